// RUN: weft-opt %s -search-shardings='problem=%t' -verify-plan | FileCheck %s --check-prefix=CHOICE
// RUN: FileCheck %s --input-file=%t

// On five parts, the search considers two runs of neighboring parts with any border, and three runs with fixed
// borders: a and b, c and d, e. A pinned part is free where these lack the pinned cut, and values may have the layouts.

#mesh = #weft.mesh<"a"=2, "b"=2, "c"=2, "d"=2, "e"=2>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @w ["ffn", "hidden"] : tensor<64x64xf64>
  weft.variable parameter @x ["sequence", "hidden"] : tensor<64x64xf64>

  // CHECK-LABEL: node "variable w"
  // CHECK-NOT:   [\"a\", \"d\"]
  // CHECK:       option "[\"c\", \"d\"], [\"a\", \"b\"]"
  // CHECK-NOT:   [\"a\", \"d\"]
  // CHECK-LABEL: node "contract
  // CHECK-NOT:   a:a b:b c:{{[ac]}}
  // CHECK:       option "a:a b:a c:b d:b e:c"
  // CHECK-NOT:   a:a b:b c:{{[ac]}}
  // CHECK:       option "a:a b:b c:b d:b e:b"
  // CHECK-NOT:   a:a b:b c:{{[ac]}}
  // CHECK-LABEL: node "contract
  // CHECK-NOT:   b:a
  // CHECK:       option "a:a b:c c:a d:a e:b"
  // CHECK-NOT:   b:a

  // The pinned "n" of the second matmul is cut over b, and no other.
  // CHOICE: weft.contract
  // CHOICE: weft.contract {{.*}}tensor<64x64xf64, #weft.sharding<#mesh, [{{.*}}, {"b"}]>
  func.func @step() {
    %x = weft.read @x : tensor<64x64xf64>
    %w = weft.read @w : tensor<64x64xf64>
    %h = weft.contract "sk,nk->sn"(%x, %w)
        : (tensor<64x64xf64>, tensor<64x64xf64>) -> tensor<64x64xf64>
    %y = weft.contract "sk,nk->sn"(%h, %w) {weft.pins = [unit, unit, ["b"]]}
        : (tensor<64x64xf64>, tensor<64x64xf64>) -> tensor<64x64xf64>
    weft.assign @x, %y : tensor<64x64xf64>
    return
  }
}
