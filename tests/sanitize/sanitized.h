/* Whether this is compiled for AddressSanitizer: gcc's way to say so, and
 * clang's. */
#ifndef TESTS_SANITIZE_SANITIZED_H
#define TESTS_SANITIZE_SANITIZED_H

#if defined __SANITIZE_ADDRESS__
#define SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
