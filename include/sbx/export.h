/* Marks of the public interface: what is exported, and what a compiler can check about it. */
#ifndef SBX_EXPORT_H
#define SBX_EXPORT_H

#define SBX_API __attribute__((visibility("default")))
#define SBX_MUST_CHECK __attribute__((warn_unused_result))
#define SBX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

#endif
