# Login shells: Debian's /etc/profile has just reset PATH.
export PATH=/opt/tare/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LANG=C.UTF-8 APPTAINER_NOHTTPS=true APPTAINER_MKSQUASHFS_ARGS="-comp zstd -Xcompression-level 1"
