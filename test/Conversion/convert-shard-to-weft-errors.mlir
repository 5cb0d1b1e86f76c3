// RUN: weft-opt --convert-shard-to-weft --split-input-file --verify-diagnostics %s

// expected-error @+1 {{convert-shard-to-weft: expected one shard.grid, got 0}}
module {
}

// -----

module {
  // expected-error @+1 {{convert-shard-to-weft: expected sizes that are known, got ? for axis 1}}
  shard.grid @g(shape = 2x?)
}

// -----

module {
  // expected-error @+1 {{convert-shard-to-weft: expected in weft.axes a name for each of 2 axes, got ["dp"]}}
  shard.grid @g(shape = 2x2) {weft.axes = ["dp"]}
}

// -----

module {
  // expected-error @+1 {{convert-shard-to-weft: }}
  shard.grid @g(shape = 2x2) {weft.axes = ["dp", "dp"]}
}

// -----

module {
  shard.grid @g(shape = 2)
  // expected-error @+1 {{convert-shard-to-weft: argument #0 has no shard.shard}}
  func.func @f(%x: tensor<4xf64>) {
    return
  }
}

// -----

module {
  shard.grid @g(shape = 2)
  func.func @f(%x: tensor<4xf64>) {
    // expected-error @+1 {{convert-shard-to-weft: halos and shards of different sizes have no form in the weft dialect}}
    %s = shard.sharding @g split_axes = [[0]] halo_sizes = [1, 1] : !shard.sharding
    %xs = shard.shard %x to %s : tensor<4xf64>
    return
  }
}

// -----

module {
  shard.grid @g(shape = 2)
  func.func @f(%x: tensor<4xf64>) {
    %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
    // expected-error @+1 {{convert-shard-to-weft: expected at most 1 dimensions to be split, got 2}}
    %xs = shard.shard %x to %s : tensor<4xf64>
    return
  }
}

// -----

module {
  shard.grid @g(shape = 3)
  func.func @f(%x: tensor<4xf64>) {
    %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
    // expected-error @+1 {{convert-shard-to-weft: }}
    %xs = shard.shard %x to %s : tensor<4xf64>
    return
  }
}

// -----

module {
  shard.grid @g(shape = 2)
  func.func @f(%x: tensor<4xf64>, %s: !shard.sharding) {
    // expected-error @+1 {{convert-shard-to-weft: expected the sharding by a shard.sharding}}
    %xs = shard.shard %x to %s : tensor<4xf64>
    return
  }
}

// -----

module {
  shard.grid @g(shape = 2)
  weft.variable parameter @w ["hidden"] : tensor<4xf64>
  func.func @f() {
    %cut = shard.sharding @g split_axes = [[0]] : !shard.sharding
    %whole = shard.sharding @g split_axes = [[]] : !shard.sharding
    %a = weft.read @w : tensor<4xf64>
    %as = shard.shard %a to %cut : tensor<4xf64>
    // expected-error @+1 {{convert-shard-to-weft: variable @w has the shardings}}
    %b = weft.read @w : tensor<4xf64>
    %bs = shard.shard %b to %whole : tensor<4xf64>
    return
  }
}

// -----

module {
  shard.grid @g(shape = 2x2) {weft.axes = ["dp", "tp"]}
  func.func @f(%x: tensor<4x8xf64>, %w: tensor<8x4xf64>) {
    %rows = shard.sharding @g split_axes = [[0]] : !shard.sharding
    %columns = shard.sharding @g split_axes = [[], [1]] : !shard.sharding
    %xs = shard.shard %x to %columns : tensor<4x8xf64>
    %ws = shard.shard %w to %rows : tensor<8x4xf64>
    // expected-error @+1 {{convert-shard-to-weft: operand #1 is cut by ["dp"] in dimension 0, another operand by ["tp"]}}
    %p = weft.contract "bn,nk->bk"(%xs, %ws) : (tensor<4x8xf64>, tensor<8x4xf64>)
        -> tensor<4x4xf64>
    return
  }
}

// -----

module {
  shard.grid @g(shape = 2)
  func.func @f(%x: tensor<4x8xf64>, %w: tensor<8x4xf64>) {
    %rows = shard.sharding @g split_axes = [[0]] : !shard.sharding
    %columns = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
    %xs = shard.shard %x to %rows : tensor<4x8xf64>
    %ws = shard.shard %w to %columns : tensor<8x4xf64>
    // expected-error @+1 {{convert-shard-to-weft: }}
    %p = weft.contract "bn,nk->bk"(%xs, %ws) : (tensor<4x8xf64>, tensor<8x4xf64>)
        -> tensor<4x4xf64>
    return
  }
}

// -----

module {
  shard.grid @g(shape = 2)
  // expected-error @+1 {{convert-shard-to-weft: expected a function with a body of one block that does not call itself}}
  func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
    %whole = shard.sharding @g split_axes = [[]] : !shard.sharding
    %xs = shard.shard %x to %whole : tensor<4xf64>
    %y = weft.call @f(%xs) label "again" : (tensor<4xf64>) -> tensor<4xf64>
    return %y : tensor<4xf64>
  }
}

// -----

module {
  shard.grid @g(shape = 2)
  func.func @f(%x: tensor<4xf64>) {
    %whole = shard.sharding @g split_axes = [[]] : !shard.sharding
    %xs = shard.shard %x to %whole : tensor<4xf64>
    // expected-error @+1 {{convert-shard-to-weft: 'shard.all_reduce' does not say how it may be sharded}}
    %y = shard.all_reduce %xs on @g grid_axes = [0] : tensor<4xf64> -> tensor<4xf64>
    return
  }
}

// -----

module {
  // expected-error @+1 {{convert-shard-to-weft: expected 1 to 1048576 ranks in all, got none}}
  shard.grid @g(shape = 2x0)
}

// -----

module {
  // expected-error @+1 {{convert-shard-to-weft: expected 1 to 1048576 ranks in all, got more}}
  shard.grid @g(shape = 2147483648x2147483648x2147483648)
}

// -----

module {
  shard.grid @g(shape = 2)
  func.func @f(%x: tensor<4xf64>) {
    // expected-error @+1 {{convert-shard-to-weft: axis 5 does not exist, the grid has 1}}
    %s = shard.sharding @g split_axes = [[5]] : !shard.sharding
    %xs = shard.shard %x to %s : tensor<4xf64>
    return
  }
}
