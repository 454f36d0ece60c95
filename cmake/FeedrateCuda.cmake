# Decides whether this build uses CUDA and for which GPUs, and enables the language. Included by the top CMakeLists.txt,
# or by the one in libraries/ring or libraries/tensors if that library is built separately.
#
# In:  FEEDRATE_CUDA = AUTO (CUDA if there is a compiler) | ON (a compiler is required) | OFF.
# Out: FEEDRATE_HAVE_CUDA. If it is OFF, FEEDRATE_NO_CUDA_REASON holds the reason, which the executable reports. If it is
#      ON, the language CUDA is enabled and CUDA::cudart_static, CUDA::nvtx3 and others can be linked.
#
# The compiler is CMAKE_CUDA_COMPILER or CUDACXX if set; otherwise it is looked up in PATH, /usr/local/cuda, and finally
# .cuda/ in the source folder, which experiments/setup.sh fills from PyPI if the machine has no toolkit.

set(FEEDRATE_CUDA AUTO CACHE STRING "CUDA: AUTO (if there is a compiler), ON or OFF")
set_property(CACHE FEEDRATE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(FEEDRATE_HAVE_CUDA OFF)
set(FEEDRATE_NO_CUDA_REASON "")

# Sets `reason` to the reason why CUDA cannot be enabled, or to an empty string if CMAKE_CUDA_COMPILER works.
macro(_feedrate_find_cuda reason)
  set(${reason} "")
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)   # repeat a failed check, since a toolkit may have been installed
    if(NOT DEFINED ENV{CUDACXX})
      find_program(FEEDRATE_NVCC nvcc PATHS /usr/local/cuda/bin "${CMAKE_CURRENT_LIST_DIR}/../.cuda/bin" NO_CACHE)
      if(FEEDRATE_NVCC)
        set(ENV{CUDACXX} "${FEEDRATE_NVCC}")
      endif()
    endif()
    if(DEFINED ENV{CUDACXX})
      include(CheckLanguage)
      check_language(CUDA)
      if(NOT CMAKE_CUDA_COMPILER)
        set(${reason} "the CUDA compiler $ENV{CUDACXX} does not work with this C++ compiler")
      endif()
    else()
      set(${reason} "no CUDA compiler (nvcc) was found")
    endif()
  endif()
endmacro()

# Selects the machine's own GPU if it has one; otherwise, or with FEEDRATE_EVERY_GPU, all GPUs since Ampere, plus PTX
# for later ones.
option(FEEDRATE_EVERY_GPU "Build device code for all GPUs since Ampere, regardless of this machine's GPU" OFF)
function(_feedrate_cuda_architectures out)
  find_program(smi nvidia-smi NO_CACHE)
  set(gpus "")
  if(smi)
    execute_process(COMMAND "${smi}" -L OUTPUT_VARIABLE gpus ERROR_QUIET TIMEOUT 30)
  else()
    file(GLOB gpus "/dev/nvidia[0-9]")
  endif()
  if(NOT FEEDRATE_EVERY_GPU AND gpus MATCHES "^GPU|/dev/nvidia")
    set(${out} native PARENT_SCOPE)
  else()
    set(${out} "80-real;86-real;89-real;90" PARENT_SCOPE)
  endif()
endfunction()

if(FEEDRATE_CUDA STREQUAL "OFF")
  set(FEEDRATE_NO_CUDA_REASON "built with FEEDRATE_CUDA=OFF")
else()
  _feedrate_find_cuda(FEEDRATE_NO_CUDA_REASON)
  if(NOT FEEDRATE_NO_CUDA_REASON)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      _feedrate_cuda_architectures(_architectures)
      set(CMAKE_CUDA_ARCHITECTURES "${_architectures}" CACHE STRING "GPU architectures to compile for" FORCE)
    endif()
    enable_language(CUDA)
    # nvcc supports C++20 since 12.0, but CMake 3.25 does not know this.
    foreach(kind STANDARD EXTENSION)
      if(NOT CMAKE_CUDA20_${kind}_COMPILE_OPTION)
        set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
      endif()
    endforeach()
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.0)
      set(FEEDRATE_NO_CUDA_REASON "CUDA ${CMAKE_CUDA_COMPILER_VERSION} is too old for C++20, which needs 12.0 or later")
    else()
      # CMake 3.25's module fails on CUDA 13, which has no nvToolsExt, unless that target exists.
      if(CMAKE_VERSION VERSION_LESS 3.26 AND NOT TARGET CUDA::nvToolsExt)
        add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
      endif()
      find_package(CUDAToolkit REQUIRED GLOBAL)
      set(FEEDRATE_HAVE_CUDA ON)
    endif()
  endif()
  if(FEEDRATE_CUDA STREQUAL "ON" AND NOT FEEDRATE_HAVE_CUDA)
    message(FATAL_ERROR "FEEDRATE_CUDA=ON, but ${FEEDRATE_NO_CUDA_REASON}")
  endif()
endif()

if(FEEDRATE_HAVE_CUDA)
  message(STATUS "Feedrate: CUDA ${CMAKE_CUDA_COMPILER_VERSION} (${CMAKE_CUDA_COMPILER}) for ${CMAKE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "Feedrate: CPU-only build: ${FEEDRATE_NO_CUDA_REASON}")
endif()
