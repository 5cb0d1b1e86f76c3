#!/bin/sh
#===- has-iota.sh - whether a module is interesting ------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
#
# Says 1, "interesting", of a module with an iota.
! grep -q weft.iota "$1"
