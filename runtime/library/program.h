/* Programs in the tables of a library: what their instructions make. */
#ifndef RUNTIME_LIBRARY_PROGRAM_H
#define RUNTIME_LIBRARY_PROGRAM_H

#include <stdbool.h>

#include "runtime/ckr_abi.h"

/* Whether the tables agree with themselves.  Others would let steps write
 * outside their memory. */
bool program_tables_are_sane(const struct ckr_library *);
/* The instruction that computes tensor i, or begins its transfer; -1: none. */
int32_t program_made(const struct ckr_program *, uint32_t i);
/* Whether a later instruction ends the transfer of instruction i. */
bool program_is_apart(const struct ckr_program *, uint32_t i);
/* The first instruction after which a step cannot be rolled back: the first
 * update, or the one after the loss. */
uint32_t program_commit(const struct ckr_program *);
/* The instruction after which all outputs and the loss are computed, though
 * perhaps still being transferred; -1: there are none. */
int32_t program_last_output(const struct ckr_program *);
/* [ninstr]: live bytes of the arena in each instruction, by the plan, of the
 * micro-batch that its turn is for.  Caller frees; NULL: no memory. */
uint64_t *program_live_bytes(const struct ckr_program *);

#endif
