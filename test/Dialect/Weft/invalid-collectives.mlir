// RUN: weft-opt %s -split-input-file -verify-diagnostics

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
func.func @reshard_without_sharding(%x: tensor<4x8xf32, #whole>) {
  // reshard_c1
  // expected-error @+1 {{input and output must differ in their sharding only}}
  %0 = weft.reshard %x : tensor<4x8xf32, #whole> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
func.func @reshard_to_other_shape(%x: tensor<4x8xf32, #whole>) {
  // reshard_c1
  // expected-error @+1 {{input and output must differ in their sharding only}}
  %0 = weft.reshard %x : tensor<4x8xf32, #whole> -> tensor<8x8xf32, #whole>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
func.func @reshard_to_other_mesh(%x: tensor<4x8xf32, #whole>) {
  // reshard_c1
  // expected-error @+1 {{input and output must differ in their sharding only}}
  %0 = weft.reshard %x : tensor<4x8xf32, #whole> -> tensor<4x8xf32, #weft.sharding<#weft.mesh<"dp"=2>, [{}, {}]>>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
#maximum = #weft.sharding<#mesh, [{}, {}], unreduced = max{"tp"}>
func.func @reshard_to_pending_maximum(%x: tensor<4x8xf32, #whole>) {
  // reshard_c2
  // expected-error @+1 {{cannot make #weft.sharding<#weft.mesh<"dp"=2, "tp"=2>, [{}, {}]> pending as #weft.sharding<#weft.mesh<"dp"=2, "tp"=2>, [{}, {}], unreduced = max{"tp"}>}}
  %0 = weft.reshard %x : tensor<4x8xf32, #whole> -> tensor<4x8xf32, #maximum>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
#maximum = #weft.sharding<#mesh, [{}, {}], unreduced = max{"tp"}>
func.func @reshard_to_other_operator(%x: tensor<4x8xf32, #maximum>) {
  // reshard_c2
  // expected-error @+1 {{pending as}}
  %0 = weft.reshard %x : tensor<4x8xf32, #maximum> -> tensor<4x8xf32, #pending>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @no_axes(%x: tensor<4x8xf32>) {
  // group_c1
  // expected-error @+1 {{needs at least one axis}}
  %0 = weft.all_reduce sum %x over [] of #mesh : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @unknown_axis(%x: tensor<4x8xf32>) {
  // group_c1
  // expected-error @+1 {{axis "pp" is not in the mesh}}
  %0 = weft.all_reduce sum %x over ["pp"] of #mesh : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @axis_twice(%x: tensor<4x8xf32>) {
  // group_c1
  // expected-error @+1 {{axis "tp" occurs twice}}
  %0 = weft.all_reduce sum %x over ["tp", "tp"] of #mesh : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @other_element_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{input and output must have one element type}}
  %0 = weft.all_reduce sum %x over ["tp"] of #mesh : tensor<4x8xf32> -> tensor<4x8xf64>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
func.func @one_side_sharded(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{input and output must both be sharded or both be local}}
  %0 = weft.all_reduce sum %x over ["tp"] of #mesh : tensor<4x8xf32> -> tensor<4x8xf32, #whole>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#line = #weft.mesh<"dp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
func.func @other_mesh(%x: tensor<4x8xf32, #pending>) {
  // expected-error @+1 {{input, output and op must agree on the mesh}}
  %0 = weft.all_reduce sum %x over ["dp"] of #line : tensor<4x8xf32, #pending> -> tensor<4x8xf32, #whole>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
func.func @whole_shape_changes(%x: tensor<4x8xf32, #pending>) {
  // expected-error @+1 {{does not change the shape of the whole value}}
  %0 = weft.all_reduce sum %x over ["tp"] of #mesh : tensor<4x8xf32, #pending> -> tensor<8x8xf32, #whole>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @number_of_dimensions(%x: tensor<4x8xf32>, %i: index) {
  // expected-error @+1 {{input and output must have the same number of dimensions}}
  %0 = weft.slice %x dim 1 over ["tp"] of #mesh index %i : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @no_such_dimension(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{dimension 2 does not exist, the tensor has 2}}
  %0 = weft.all_gather %x dim 2 over ["tp"] of #mesh : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @negative_dimension(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{dimension -1 does not exist, the tensor has 2}}
  %0 = weft.all_gather %x dim -1 over ["tp"] of #mesh : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
func.func @all_reduce_not_pending(%x: tensor<4x8xf32, #whole>) {
  // all_reduce_c1
  // expected-error @+1 {{expected an input pending by sum over "tp", got}}
  %0 = weft.all_reduce sum %x over ["tp"] of #mesh : tensor<4x8xf32, #whole> -> tensor<4x8xf32, #whole>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
func.func @all_reduce_by_other_operator(%x: tensor<4x8xf32, #pending>) {
  // all_reduce_c1
  // expected-error @+1 {{expected an input pending by max over "tp", got}}
  %0 = weft.all_reduce max %x over ["tp"] of #mesh : tensor<4x8xf32, #pending> -> tensor<4x8xf32, #whole>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
func.func @all_reduce_output(%x: tensor<4x8xf32, #pending>) {
  // all_reduce_c1
  // expected-error @+1 {{must result in #weft.sharding<#weft.mesh<"dp"=2, "tp"=2>, [{}, {}]>, got}}
  %0 = weft.all_reduce sum %x over ["tp"] of #mesh : tensor<4x8xf32, #pending> -> tensor<4x8xf32, #pending>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @all_reduce_local_shape(%x: tensor<4x8xf32>) {
  // all_reduce_c2
  // expected-error @+1 {{must result in the shape [4, 8], got [4, 4]}}
  %0 = weft.all_reduce sum %x over ["tp"] of #mesh : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
func.func @all_gather_not_cut(%x: tensor<4x8xf32, #whole>) {
  // all_gather_c1
  // expected-error @+1 {{expected ["tp"] as the last axes of dimension 0, got []}}
  %0 = weft.all_gather %x dim 0 over ["tp"] of #mesh : tensor<4x8xf32, #whole> -> tensor<4x8xf32, #whole>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#both = #weft.sharding<#mesh, [{"dp", "tp"}, {}]>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
func.func @all_gather_major_axis(%x: tensor<4x8xf32, #both>) {
  // all_gather_c1
  // expected-error @+1 {{expected ["dp"] as the last axes of dimension 0, got ["dp", "tp"]}}
  %0 = weft.all_gather %x dim 0 over ["dp"] of #mesh : tensor<4x8xf32, #both> -> tensor<4x8xf32, #rows>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
func.func @all_gather_output(%x: tensor<4x8xf32, #rows>) {
  // all_gather_c1
  // expected-error @+1 {{must result in #weft.sharding<#weft.mesh<"dp"=2, "tp"=2>, [{}, {}]>, got}}
  %0 = weft.all_gather %x dim 0 over ["tp"] of #mesh : tensor<4x8xf32, #rows> -> tensor<4x8xf32, #columns>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @all_gather_local_shape(%x: tensor<4x8xf32>) {
  // all_gather_c2
  // expected-error @+1 {{must result in the shape [8, 8], got [4, 8]}}
  %0 = weft.all_gather %x dim 0 over ["tp"] of #mesh : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
func.func @reduce_scatter_not_pending(%x: tensor<4x8xf32, #whole>) {
  // reduce_scatter_c1
  // expected-error @+1 {{expected an input pending by sum over "tp", got}}
  %0 = weft.reduce_scatter sum %x dim 0 over ["tp"] of #mesh : tensor<4x8xf32, #whole> -> tensor<4x8xf32, #rows>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
func.func @reduce_scatter_output(%x: tensor<4x8xf32, #pending>) {
  // reduce_scatter_c1
  // expected-error @+1 {{must result in #weft.sharding<#weft.mesh<"dp"=2, "tp"=2>, [{"tp"}, {}]>, got}}
  %0 = weft.reduce_scatter sum %x dim 0 over ["tp"] of #mesh : tensor<4x8xf32, #pending> -> tensor<4x8xf32, #columns>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @reduce_scatter_local_shape(%x: tensor<4x8xf32>) {
  // reduce_scatter_c2
  // expected-error @+1 {{must result in the shape [8, 8], got [4, 8]}}
  %0 = weft.reduce_scatter sum %x dim 0 over ["tp"] of #mesh : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @reduce_scatter_indivisible(%x: tensor<3xf32>) {
  // reduce_scatter_c2
  // expected-error @+1 {{dimension 0 of size 3 must be a multiple of the group's 2 ranks}}
  %0 = weft.reduce_scatter sum %x dim 0 over ["tp"] of #mesh : tensor<3xf32> -> tensor<1xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
func.func @all_to_all_not_cut(%x: tensor<4x8xf32, #columns>) {
  // all_to_all_c1
  // expected-error @+1 {{expected ["tp"] as the last axes of dimension 0, got []}}
  %0 = weft.all_to_all %x split 1 concat 0 over ["tp"] of #mesh : tensor<4x8xf32, #columns> -> tensor<4x8xf32, #rows>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
func.func @all_to_all_output(%x: tensor<4x8xf32, #rows>) {
  // all_to_all_c1
  // expected-error @+1 {{must result in #weft.sharding<#weft.mesh<"dp"=2, "tp"=2>, [{}, {"tp"}]>, got}}
  %0 = weft.all_to_all %x split 1 concat 0 over ["tp"] of #mesh : tensor<4x8xf32, #rows> -> tensor<4x8xf32, #rows>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
func.func @all_to_all_one_dimension(%x: tensor<4x8xf32, #rows>) {
  // all_to_all_c1
  // expected-error @+1 {{splits and joins the same dimension 0}}
  %0 = weft.all_to_all %x split 0 concat 0 over ["tp"] of #mesh : tensor<4x8xf32, #rows> -> tensor<4x8xf32, #rows>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @all_to_all_local_shape(%x: tensor<4x8xf32>) {
  // all_to_all_c2
  // expected-error @+1 {{must result in the shape [8, 4], got [4, 8]}}
  %0 = weft.all_to_all %x split 1 concat 0 over ["tp"] of #mesh : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @all_to_all_indivisible(%x: tensor<4x3xf32>) {
  // all_to_all_c2
  // expected-error @+1 {{dimension 1 of size 3 must be a multiple of the group's 2 ranks}}
  %0 = weft.all_to_all %x split 1 concat 0 over ["tp"] of #mesh : tensor<4x3xf32> -> tensor<8x1xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @permute_twice(%x: tensor<4x8xf32>) {
  // permute_c1
  // expected-error @+1 {{must name each of the group's 2 ranks once, got [1, 1]}}
  %0 = weft.permute %x over ["tp"] of #mesh from [1, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @permute_too_few(%x: tensor<4x8xf32>) {
  // permute_c1
  // expected-error @+1 {{must name each of the group's 4 ranks once, got [1, 0]}}
  %0 = weft.permute %x over ["dp", "tp"] of #mesh from [1, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#both = #weft.sharding<#mesh, [{"dp", "tp"}, {}]>
#swapped = #weft.sharding<#mesh, [{"tp", "dp"}, {}]>
func.func @permute_wrong_shard(%x: tensor<4x8xf32, #both>) {
  // permute_c2
  // expected-error @+1 {{rank 1 gets shard 1 of dimension 0, expected 2}}
  %0 = weft.permute %x over ["dp", "tp"] of #mesh from [0, 1, 2, 3] : tensor<4x8xf32, #both> -> tensor<4x8xf32, #swapped>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
func.func @permute_shards(%x: tensor<4x8xf32, #rows>) {
  // permute_c2
  // expected-error @+1 {{dimension 0 is cut in 2 shards, and then in 1}}
  %0 = weft.permute %x over ["tp"] of #mesh from [1, 0] : tensor<4x8xf32, #rows> -> tensor<4x8xf32, #columns>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#pending = #weft.sharding<#mesh, [{"tp"}, {}], unreduced = sum{"dp"}>
func.func @permute_pending(%x: tensor<4x8xf32, #pending>) {
  // permute_c2
  // expected-error @+1 {{input and output must have the same unreduced axes}}
  %0 = weft.permute %x over ["tp"] of #mesh from [0, 1] : tensor<4x8xf32, #pending> -> tensor<4x8xf32, #rows>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @permute_local_shape(%x: tensor<4x8xf32>) {
  // permute_c3
  // expected-error @+1 {{must result in the shape [4, 8], got [8, 4]}}
  %0 = weft.permute %x over ["tp"] of #mesh from [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
func.func @slice_output(%x: tensor<4x8xf32, #whole>) {
  // slice_c1
  // expected-error @+1 {{must result in #weft.sharding<#weft.mesh<"dp"=2, "tp"=2>, [{"tp"}, {}]>, got}}
  %0 = weft.slice %x dim 0 over ["tp"] of #mesh : tensor<4x8xf32, #whole> -> tensor<4x8xf32, #columns>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @slice_local_shape(%x: tensor<4x8xf32>, %i: index) {
  // slice_c2
  // expected-error @+1 {{must result in the shape [8, 8], got [4, 8]}}
  %0 = weft.slice %x dim 0 over ["tp"] of #mesh index %i : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @slice_indivisible(%x: tensor<3xf32>, %i: index) {
  // slice_c2
  // expected-error @+1 {{dimension 0 of size 3 must be a multiple of the group's 2 ranks}}
  %0 = weft.slice %x dim 0 over ["tp"] of #mesh index %i : tensor<3xf32> -> tensor<1xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @slice_without_index(%x: tensor<4x8xf32>) {
  // slice_c3
  // expected-error @+1 {{needs this rank's index once tensors are local}}
  %0 = weft.slice %x dim 0 over ["tp"] of #mesh : tensor<4x8xf32> -> tensor<2x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
func.func @slice_with_index_too_early(%x: tensor<4x8xf32, #whole>, %i: index) {
  // slice_c3
  // expected-error @+1 {{takes no index before tensors are local}}
  %0 = weft.slice %x dim 0 over ["tp"] of #mesh index %i : tensor<4x8xf32, #whole> -> tensor<4x8xf32, #rows>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#whole = #weft.sharding<#mesh, [{}, {}]>
func.func @partial_output(%x: tensor<4x8xf32, #whole>) {
  // partial_c1
  // expected-error @+1 {{must result in #weft.sharding<#weft.mesh<"dp"=2, "tp"=2>, [{}, {}], unreduced = sum{"tp"}>, got}}
  %0 = weft.partial %x over ["tp"] of #mesh : tensor<4x8xf32, #whole> -> tensor<4x8xf32, #whole>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
func.func @partial_already_pending(%x: tensor<4x8xf32, #pending>) {
  // partial_c1
  // expected-error @+1 {{expected an input that is replicated over "tp", got}}
  %0 = weft.partial %x over ["tp"] of #mesh : tensor<4x8xf32, #pending> -> tensor<4x8xf32, #pending>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#maximum = #weft.sharding<#mesh, [{}, {}], unreduced = max{"dp"}>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
func.func @partial_of_maximum(%x: tensor<4x8xf32, #maximum>) {
  // partial_c1
  // expected-error @+1 {{a pending sum}}
  %0 = weft.partial %x over ["tp"] of #mesh : tensor<4x8xf32, #maximum> -> tensor<4x8xf32, #pending>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#pending = #weft.sharding<#mesh, [{}, {}], unreduced = sum{"tp"}>
func.func @partial_of_cut_axis(%x: tensor<4x8xf32, #rows>) {
  // partial_c1
  // expected-error @+1 {{expected an input that is replicated over "tp", got}}
  %0 = weft.partial %x over ["tp"] of #mesh : tensor<4x8xf32, #rows> -> tensor<4x8xf32, #pending>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @partial_local_shape(%x: tensor<4x8xf32>, %i: index) {
  // partial_c2
  // expected-error @+1 {{must result in the shape [4, 8], got [2, 8]}}
  %0 = weft.partial %x over ["tp"] of #mesh index %i : tensor<4x8xf32> -> tensor<2x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @partial_without_index(%x: tensor<4x8xf32>) {
  // partial_c2
  // expected-error @+1 {{needs this rank's index once tensors are local}}
  %0 = weft.partial %x over ["tp"] of #mesh : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
#rows = #weft.sharding<#mesh, [{"tp"}, {}]>
#columns = #weft.sharding<#mesh, [{}, {"tp"}]>
func.func @slice_of_used_axis(%x: tensor<4x8xf32, #columns>) {
  // slice_c1
  // expected-error @+1 {{expected an input that is replicated over "tp", got}}
  %0 = weft.slice %x dim 0 over ["tp"] of #mesh : tensor<4x8xf32, #columns> -> tensor<4x8xf32, #rows>
  return
}

// -----

#mesh = #weft.mesh<"dp"=2, "tp"=2>
func.func @axis_index_unknown() {
  // axis_index_c1
  // expected-error @+1 {{axis "pp" is not in the mesh}}
  %0 = weft.axis_index "pp" of #mesh
  return
}
