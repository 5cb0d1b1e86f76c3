// RUN: not weft-opt %s -pad-variables="pins=qq=2" 2>&1 | FileCheck %s --check-prefix=PIN
// PIN: error: pad-variables: --pin: unknown name 'qq'

// RUN: not weft-opt %s -pad-variables="plan={version: 1 mesh {axis {size: 2}}}" 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: plan:1:18: error: pad-variables: mesh.axis[0].name: missing required field
