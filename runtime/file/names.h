/* Mapping of array names that differ from the expected ones by a prefix. */
#ifndef RUNTIME_FILE_NAMES_H
#define RUNTIME_FILE_NAMES_H

#include "runtime/file/array.h"

/* Call arrays whose names begin with OLD as if they began with NEW, as given
 * in the text "OLD=NEW", of which either may be empty; of several that fit a
 * name the last counts.  States of an optimizer, in a checkpoint, keep theirs.
 * Refused: an OLD that no name begins with, and two arrays of one name. */
ckr_status names_map(struct array_file *, const char *const *map, size_t nmap,
                     struct err *);
/* Whether the name is that of a state: OPTIMIZER.STATE.NAME. */
bool names_is_state(const struct array_file *, const char *name);

/* The first n bytes of `from` and the text behind them; NULL: no memory.
 * Caller frees. */
char *names_joined(const char *from, size_t n, const char *rest);

/* An array that is looked for. */
struct wanted {
	const char *name;
	int rank;
	const int64_t *dim;
};

/* In words behind a message, which mappings would find all that is wanted, or
 * most of it and more than the names as they are, and what else is to be typed
 * for what is missing or has another shape; "" if none would. */
const char *names_guess(const struct array_file *, const struct wanted *,
                        size_t n, char *text, size_t size);

#endif
