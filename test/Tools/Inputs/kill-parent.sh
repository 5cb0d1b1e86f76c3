#===- kill-parent.sh - kills the parent of a program -----------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
#
# Usage: kill-parent.sh COMMAND...
# Kills COMMAND as soon as it has started a program; fails if that lives on.
"$@" &
parent=$!
child=
while [ -z "$child" ]; do
  if ! [ -e /proc/$parent/exe ]; then
    echo "the command was done before it had started anything"
    exit 1
  fi
  sleep 0.01
  child=$(cd /proc && grep -ls "^PPid:[[:space:]]*$parent\$" [0-9]*/status | head -n 1 | cut -d / -f 1)
done
kill -KILL $parent
tries=0
while [ -e /proc/$child/exe ]; do # Of a process that has ended there is none, even where nobody has waited for it.
  tries=$((tries + 1))
  if [ $tries -gt 1000 ]; then
    echo "process $child lives on"
    kill -KILL $child
    exit 1
  fi
  sleep 0.01
done
