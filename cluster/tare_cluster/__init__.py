"""The embedded virtual Slurm cluster. Standard library only: it runs on a fresh machine with nothing but Python 3.10."""
