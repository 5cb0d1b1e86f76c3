// RUN: weft-opt %s -lower-kernels-to-loops -split-input-file -verify-diagnostics

// expected-error @+1 {{needs an attribute 'weft.tied' with one number for each result}}
func.func private @ties_missing(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{result 0 cannot be tied to argument 0: it has another type}}
func.func private @tied_to_another_type(%x: tensor<5xf32>, %y: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: 0>} {
  return %y : tensor<4xf32>
}

// -----

// expected-error @+1 {{result 0 cannot be tied to argument 3: there is none}}
func.func private @tied_to_nothing(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: 3>} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{result 1 cannot be tied to argument 0: it is tied already}}
func.func private @tied_twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {weft.tied = array<i64: 0, 0>} {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @+1 {{result 0 is tied to argument 0, but is another argument}}
func.func private @tied_to_another_argument(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: 0>} {
  return %y : tensor<4xf32>
}

// -----

// expected-error @+1 {{expected arguments of a kernel that are indices or tensors of static shape without encoding, got 'tensor<?xf32>'}}
func.func private @symbolic(%x: tensor<?xf32>) -> tensor<?xf32>
    attributes {weft.tied = array<i64: -1>} {
  return %x : tensor<?xf32>
}

// -----

// expected-error @+1 {{expected arguments of a kernel that are indices or tensors of static shape without encoding, got 'f32'}}
func.func private @scalar(%x: f32) attributes {weft.tied = array<i64>} {
  return
}

// -----

// expected-error @+1 {{expected a kernel with a body of one block}}
func.func private @declaration(%x: tensor<4xf32>) attributes {weft.tied = array<i64>}

// -----

func.func private @communication(%x: tensor<4xf32>) -> tensor<4xf32>
    attributes {weft.tied = array<i64: -1>} {
  // expected-error @+1 {{cannot be part of a kernel for the host}}
  %y = weft.all_reduce sum %x over ["dp"] of <"dp"=2> : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func private @memory_inside(%x: tensor<2x3xf32>) -> tensor<2xf32>
    attributes {weft.tied = array<i64: -1>} {
  // expected-error @+1 {{would need memory for 'tensor<3xf32>': a value inside of a kernel must be a single element}}
  %s = weft.contract "ab->b" (%x) : (tensor<2x3xf32>) -> tensor<3xf32>
  %y = weft.contract "ab,b->a" (%x, %s) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func private @not_in_place(%x: tensor<3x3xf32>, %y: tensor<3x3xf32>) -> tensor<3x3xf32>
    attributes {weft.tied = array<i64: 1>} {
  // expected-error @+1 {{cannot write result 0 over operand 1}}
  %z = weft.contract "ab,bc->ac" (%x, %y)
      : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %z : tensor<3x3xf32>
}

// -----

func.func private @read_too_late(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>)
    attributes {weft.tied = array<i64: 0, -1>} {
  %y = weft.map ins(%x : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> tensor<4xf32> {
  ^bb0(%0: f32):
    %1 = arith.mulf %0, %0 : f32
    weft.yield %1 : f32
  }
  // expected-error @+1 {{reads argument 0 after result 0 overwrote it}}
  %s = weft.contract "a->" (%x) : (tensor<4xf32>) -> tensor<f32>
  return %y, %s : tensor<4xf32>, tensor<f32>
}
