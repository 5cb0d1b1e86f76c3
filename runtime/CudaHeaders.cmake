# Which headers of CUDA the runtime's library for its devices is built with.

# The release that a header is of, by the numbers that it defines: "13.0" of cuda.h, "2.28.9" of nccl.h. Empty where it
# defines none.
function(weft_read_header_version result file pattern)
  file(STRINGS ${file} lines REGEX "^#define ${pattern} +[0-9]+")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  if(pattern STREQUAL "CUDA_VERSION" AND numbers)
    math(EXPR major "${numbers} / 1000")
    math(EXPR minor "${numbers} % 1000 / 10")
    set(numbers ${major} ${minor})
  endif()
  list(JOIN numbers "." version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# Sets `result` to the include folder of the first toolkit that has all headers, new enough, and `why` to what
# is wrong where there is none. The same versions are asked for by utils/setup-cuda; NCCL's is that of
# ncclCommWindowRegister.
function(weft_find_cuda_headers result why)
  set(old "")
  foreach(folder ${ARGN})
    set(include ${folder}/include)
    if(NOT EXISTS ${include}/cuda.h OR NOT EXISTS ${include}/cublasLt.h OR NOT EXISTS ${include}/nccl.h)
      continue()
    endif()
    weft_read_header_version(cuda ${include}/cuda.h "CUDA_VERSION")
    weft_read_header_version(nccl ${include}/nccl.h "NCCL_(MAJOR|MINOR|PATCH)")
    if(cuda AND cuda VERSION_LESS 12.8)
      string(APPEND old ", ${include}/cuda.h is of CUDA ${cuda}, not 12.8 or newer")
    elseif(nccl AND nccl VERSION_LESS 2.27.3)
      string(APPEND old ", ${include}/nccl.h is of NCCL ${nccl}, not 2.27.3 or newer")
    else()
      set(${result} ${include} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  list(JOIN ARGN ", " folders)
  set(${result} "" PARENT_SCOPE)
  set(${why} "there is no cuda.h, cublasLt.h and nccl.h that does in ${folders}${old}" PARENT_SCOPE)
endfunction()
