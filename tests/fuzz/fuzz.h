/* What a fuzz target gives and what it may use.
 *
 * A target is one file with fuzz_try and fuzz_variants.  Linked with fuzz.c
 * and libFuzzer it is a fuzzer; linked with plain.c it runs a corpus and a
 * fixed number of damaged copies of each of its files.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/err.h"

/* ---- of the target ---- */

/* Feed the input to the code under test and check what it answers; faults end
 * in fuzz_fail.  Input that is refused as it should be is no fault. */
void fuzz_try(const uint8_t *data, size_t n, unsigned variant);
/* How many ways there are to feed one input, at least 1. */
extern const unsigned fuzz_variants;
/* Whether inputs are protobuf messages, which are damaged field by field. */
extern const bool fuzz_protobuf;

/* ---- fuzz.c ---- */

/* A file with these bytes that other code can open by name; the next call
 * replaces it. */
const char *fuzz_file(const uint8_t *data, size_t n);
/* Where messages go; fuzz_said returns what went there since the last call.
 */
FILE *fuzz_messages(void);
const char *fuzz_said(void);
FILE *fuzz_null(void);
/* Say what is wrong and abort. */
_Noreturn void fuzz_fail(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
/* The rule for everything that reads files: success without an error, or
 * failure with one, and no fault of ckc's own. */
void fuzz_judge(bool ok, int errors);
/* The same of libckr, whose failures have one line of text; a line break is
 * allowed before a command to type. */
void fuzz_judge_status(ckr_status, const struct err *);

/* ---- mutate.c ---- */

struct fuzz_random {
	uint64_t s;
};

uint32_t fuzz_draw(struct fuzz_random *, uint32_t below);
/* Damage data[0..n) of room cap; returns the new length. */
size_t fuzz_mutate(struct fuzz_random *, uint8_t *data, size_t n, size_t cap);
/* The same, field by field; nothing is changed if data is no message. */
size_t fuzz_mutate_protobuf(struct fuzz_random *, uint8_t *data, size_t n,
                            size_t cap);
/* Put a field of `from` into data, at a place where its number occurs. */
size_t fuzz_cross_protobuf(struct fuzz_random *, uint8_t *data, size_t n,
                           size_t cap, const uint8_t *from, size_t nfrom);

#endif
