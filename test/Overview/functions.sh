#!/bin/bash
#===- functions.sh - shell functions of the commands in docs/reference-claims.md --===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-----------------------------------------------------------------------------===#
#
# overview.py loads them before each command. `weft` is on the path, $out is a folder.

# Compiles into $out/NAME: compile NAME MODEL RECIPE [OPTION...]
compile() {
  weft compile "$2" --machine machines/laptop.textproto --recipe "$3" -o "$out/$1" "${@:4}"
}

# The memory of a rank by classes, without inputs, in a report of weft from standard input: memory
memory() {
  sed -nE 's/^  (parameter.*), input [^,]*/\1/p'
}

# Compiles llama-tiny into $out/NAME with LINE added to its recipe: with NAME LINE [OPTION...]
with() {
  sed "s/^steps:/$2\nsteps:/" examples/llama-tiny/recipe.textproto > "$out/$1.recipe"
  compile "$1" examples/llama-tiny/model.textproto "$out/$1.recipe" "${@:3}"
}

# Elements that a rank of $out/NAME gives to each kind of collective in a step: elements NAME
elements() {
  "$out/$1" --print-program | awk '
    /^[a-z_]+:$/ {body = $1}
    /^actions of / {body = ""; acts = $3 == "step:"; divided = divided || acts}
    acts && /^  [0-9]/ {sub(/,$/, "", $2); ++runs[$2 ":"]}
    body && match($0, /all-reduce|reduce-scatter|all-gather|permute/) {
      kind = substr($0, RSTART, RLENGTH)
      match($0, /[a-z]+[0-9]+ \[/)
      kind = kind " " substr($0, RSTART, RLENGTH - 2)
      match($0, /\[[0-9, ]*\]/)
      n = split(substr($0, RSTART + 1, RLENGTH - 2), size, ", ")
      elements = 1
      for (i = 1; i <= n; ++i) elements *= size[i]
      ++kinds[kind]
      sum[body, kind] += elements
    }
    END {
      if (!divided) runs["step:"] = 1
      for (kind in kinds) {
        all = 0
        for (body in runs) all += runs[body] * sum[body, kind]
        if (all) print kind, all
      }
    }' | sort
}

# Bytes of llama-tiny's buffers by class, divided by its parameters: bytes_per_parameter NAME
bytes_per_parameter() {
  "$out/$1" --print-program | awk '
    /^buffer/ && $8 != "copy" {bytes[$7] += $4}
    END {for (class in bytes) print class, bytes[class] / 803968}' |
    grep -E "parameter|gradient|optimizer" | sort
}

# The least power of ten above the relative difference of losses, at least LEAST, as roundings depend on the processor:
# distance NAME STEPS [LEAST], from $out/one
distance() {
  for name in one "$1"; do
    "$out/$name" --data LICENSE --steps "$2" | awk '$3 == "loss" {print $4}' > "$out/$name.losses"
  done
  paste "$out/one.losses" "$out/$1.losses" | awk -v name="$1" -v limit="${3:-1e-6}" '
    {far = ($2 - $1) / $1; far = far < 0 ? -far : far; if (far > most) most = far}
    END {while (limit < most) limit *= 10; print name, NR, "steps, at most", limit}'
}

# Time of a step, tokens/s, MFU and a rank's memory by `weft plan`: predict NAME ARGUMENT...
predict() {
  echo "$1:" $(weft plan "${@:2}" --alone 2> "$out/log" |
    sed -nE "s/^predicted: (.*) a step(.*) MFU (.*) %/\1\2 \3 %,/p; s/^memory of each rank: ([0-9.]+ .iB).*/\1/p")
}

# Bytes that a layer of GPT-2 keeps for backward, by sequence x batch x hidden, from the memory of 12 layers and of 24:
# kept NAME [OPTION...]
kept() {
  for layers in 12 24; do
    sed "s/^layers: .*/layers: $layers/" examples/gpt2-124m/model.textproto > "$out/layers"
    weft plan "$out/layers" --machine machines/h100-8.textproto --seq-len 1024 --global-batch 32 --alone "${@:2}" \
      2> "$out/log" | grep -o 'activation [0-9.]* GiB'
  done | awk -v name="$1" '
    {gibibytes[NR] = $2}
    END {printf "%s: %.0f\n", name, (gibibytes[2] - gibibytes[1]) * 2 ^ 30 / 12 / (1024 * 32 * 768)}'
}
