# Flags of every target of ours, by way of the interface library sbx_flags.
add_library(sbx_flags INTERFACE)
target_compile_options(sbx_flags INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes
    -Wformat=2 -Wvla -Wpointer-arith -Wundef -Wwrite-strings)
if(SBX_WERROR)
    target_compile_options(sbx_flags INTERFACE -Werror)
endif()
if(SBX_SANITIZE)
    target_compile_options(sbx_flags INTERFACE -fsanitize=${SBX_SANITIZE} -fno-sanitize-recover=all
                                               -fno-omit-frame-pointer)
    target_link_options(sbx_flags INTERFACE -fsanitize=${SBX_SANITIZE})
endif()
