#!/bin/sh
# Prints the name of a Python that rove runs on: the given one, or else the newest on the PATH.
# usage: find-python.sh PYTHON

version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

is_new_enough() {
    case "$1" in
        3.[0-9] | 3.10 | 2.* | '') return 1 ;;
        *) return 0 ;;
    esac
}

given=$(version_of "$1")
if is_new_enough "$given"; then
    echo "$1"
    exit 0
fi
for name in python3.14 python3.13 python3.12 python3.11 python3; do
    if is_new_enough "$(version_of "$name")"; then
        echo "$1 is ${given:-missing}; using $name" >&2
        echo "$name"
        exit 0
    fi
done
echo "rove needs Python 3.11 or newer; found ${given:-none}" >&2
exit 2
