/* The keys that constant attention masks hide: mask_kind.c, for
 * match_mask.c only. */
#ifndef PASSES_CANON_MASK_H
#define PASSES_CANON_MASK_H

#include "passes/canon/match.h"

#define MASKED_SCORE (-1e4)

enum mask_kind { UNCLASSIFIED, MASKS_NOTHING, CAUSAL, BOOLEAN, OTHER };

/* The kind of a constant or constant expression as a mask; masks are large and
 * shared by layers, so it is found once.  BOOLEAN: as mask_is_boolean. */
enum mask_kind mask_kind(struct rewrite *, const struct masks *, ValId);
/* Whether a constant only shows and hides, and every query sees a key: the same
 * as a boolean mask whatever the scores. */
bool mask_is_boolean(const Val *);
/* Whether it adds -inf where it hides; a finite number beside another mask's
 * leaves a query from which both hide all keys comparing them. */
bool mask_is_infinite(struct rewrite *, ValId);
/* Whether a constant shows element i. */
bool mask_attends_at(const Val *, int64_t i);

#endif
