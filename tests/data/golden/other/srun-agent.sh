#!/bin/sh
host=$1
shift
exec srun --jobid=990017 --overlap --nodes=1 --ntasks=1 --cpus-per-task=8 --cpu-bind=none --mpi=none --nodelist="$host" /bin/sh -c "$*"
