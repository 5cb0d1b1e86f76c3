#!/bin/sh
# Says 1, "interesting", of a module with an iota.
! grep -q weft.iota "$1"
