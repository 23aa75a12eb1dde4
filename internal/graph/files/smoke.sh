#!/bin/sh
# Run a program of an image and leave in /out how it ended: its exit code, and of each
# stream the beginning and the end.
#   smoke.sh BYTES SECONDS PROGRAM [ARGUMENT...]
bytes=$1 seconds=$2
shift 2
umask 022

# What is in between is read and thrown away, so that no program waits for us.
keep() {
  head -c "$bytes" > "/out/$1"
  tail -c "$bytes" > "/out/$1.end"
}

{
  {
    timeout -k 5 "$seconds" "$@" 3>&- 4>&-
    echo $? >&4
  } 2>&3 < /dev/null | keep stdout 3>&- 4>&-
} 3>&1 4> /out/exit | keep stderr
