// RUN: weft-opt --convert-weft-to-shard=refuse-pending --split-input-file --verify-diagnostics %s

// expected-error @+1 {{convert-weft-to-shard: the module has no mesh, expected a module after phase plan}}
module {
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  // expected-error @+1 {{convert-weft-to-shard: expected a function with a body of one block}}
  func.func private @external(tensor<4xf64, #weft.sharding<#weft.mesh<"tp"=2>, [{}]>>)
}

// -----

module attributes {weft.mesh = #weft.mesh<"tp"=2>} {
  // expected-error @+1 {{convert-weft-to-shard: 'tensor<4xf64>' has no sharding, expected a module after phase plan}}
  func.func @plain(%x: tensor<4xf64>) {
    return
  }
}

// -----

#mesh = #weft.mesh<"tp"=2>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#terms = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
module attributes {weft.mesh = #mesh} {
  func.func @pending(%x: tensor<4x8xf64, #columns>, %w: tensor<8x4xf64, #rows>)
      -> tensor<4x4xf64, #terms> {
    // expected-error @+1 {{convert-weft-to-shard: pending sum over tp has no form in the shard dialect}}
    %p = weft.contract "bn,nk->bk"(%x, %w) : (tensor<4x8xf64, #columns>, tensor<8x4xf64, #rows>)
        -> tensor<4x4xf64, #terms>
    return %p : tensor<4x4xf64, #terms>
  }
}
