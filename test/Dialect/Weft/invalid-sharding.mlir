// RUN: weft-opt %s -split-input-file -verify-diagnostics

// mesh_c1
// expected-error @+1 {{mesh axis "dp" occurs twice}}
func.func private @f() attributes {weft.mesh = #weft.mesh<"dp"=2, "dp"=2>}

// -----

// mesh_c2
// expected-error @+1 {{mesh axis "dp" must have a size of at least 2, got 1}}
func.func private @f() attributes {weft.mesh = #weft.mesh<"dp"=1>}

// -----

// expected-error @+1 {{invalid kind of attribute specified}}
func.func private @f() attributes {weft.mesh = #weft.mesh<1=2>}

// -----

// mesh_c1
// expected-error @+1 {{mesh axis "tp" occurs twice}}
func.func private @f() attributes {weft.mesh = #weft.mesh<"tp"=2x2, "tp"=2>}

// -----

// mesh_c2
// expected-error @+1 {{mesh axis "tp:(2)1" must have a size of at least 2, got 1}}
func.func private @f() attributes {weft.mesh = #weft.mesh<"tp"=2x1>}

// -----

// mesh_c3
// expected-error @+1 {{mesh axis "tp:(1)2" has the name of a sub-axis, expected "tp"}}
func.func private @f() attributes {weft.mesh = #weft.mesh<"tp:(1)2"=2>}

// -----

// sharding_c1: the mesh is not split there.
// expected-error @+1 {{axis "tp:(1)4" is not in the mesh}}
func.func private @f(tensor<4xf32, #weft.sharding<#weft.mesh<"tp"=2x4>, [{"tp:(1)4"}]>>)

// -----

// sharding_c2
// expected-error @+1 {{axis "tp:(2)4" occurs twice in a sharding}}
func.func private @f(tensor<8x4xf32, #weft.sharding<#weft.mesh<"tp"=2x4>, [{"tp"}, {"tp:(2)4"}]>>)

// -----

// sharding_c1
// expected-error @+1 {{axis "dp" is not in the mesh}}
func.func private @f(tensor<4xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{"dp"}]>>)

// -----

// sharding_c1
// expected-error @+1 {{axis "dp" is not in the mesh}}
func.func private @f(tensor<4xf32, #weft.sharding<#weft.mesh<>, [{}], unreduced = sum{"dp"}>>)

// -----

// sharding_c2
// expected-error @+1 {{axis "tp" occurs twice in a sharding}}
func.func private @f(tensor<4x4xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}, {"tp"}]>>)

// -----

// sharding_c2
// expected-error @+1 {{axis "tp" occurs twice in a sharding}}
func.func private @f(tensor<4xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}], unreduced = sum{"tp"}>>)

// -----

// sharding_c3
// expected-error @+1 {{the sharding has 1 dimensions, expected those of the tensor: 2}}
func.func private @f(tensor<4x4xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{"tp"}]>>)

// -----

// sharding_c4
// expected-error @+1 {{dimension 0 of size 6 is cut over axes ["dp", "tp"] into 4 shards, which does not divide it}}
func.func private @f(tensor<6xf32, #weft.sharding<#weft.mesh<"dp"=2, "tp"=2>, [{"dp", "tp"}]>>)

// -----

// sharding_c5
// expected-error @+1 {{expected an axis: an empty list of unreduced axes is left out}}
func.func private @f(tensor<4xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{}>>)

// -----

// sharding_c6
// expected-error @+1 {{unreduced axes ["tp", "dp"] are not in the order of the mesh}}
func.func private @f(tensor<4xf32, #weft.sharding<#weft.mesh<"dp"=2, "tp"=2>, [{}], unreduced = sum{"tp", "dp"}>>)

// -----

// expected-error @+1 {{expected one of [sum, max, logsumexp] for operator that joins partial values, got: min}}
func.func private @f(tensor<4xf32, #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = min{"tp"}>>)

// -----

// sharding_c7
// expected-error @+1 {{a tensor of 'bf16' cannot be unreduced over ["tp"]: its terms are rounded before they are joined}}
func.func private @f(tensor<4xbf16, #weft.sharding<#weft.mesh<"tp"=2>, [{}], unreduced = sum{"tp"}>>)
