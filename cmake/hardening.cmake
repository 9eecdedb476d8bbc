# What distributions ask of code that reads hostile bytes. Fortify needs optimisation and does not go
# with sanitizers.
if(NOT SBX_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(sbx_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
        -fstack-protector-strong -fstack-clash-protection -fcf-protection)
endif()
target_link_options(sbx_flags INTERFACE -Wl,-z,relro,-z,now)
