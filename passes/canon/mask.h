/* Classes of constant attention masks (mask_kind.c); for match_mask.c only. */
#ifndef PASSES_CANON_MASK_H
#define PASSES_CANON_MASK_H

#include "passes/canon/match.h"

#define MASKED_SCORE (-1e4)

enum mask_kind { UNCLASSIFIED, MASKS_NOTHING, CAUSAL, BOOLEAN, OTHER };

/* The kind of a constant or constant expression as a mask.  Cached, because
 * masks are large and shared by layers.  BOOLEAN: as mask_is_boolean. */
enum mask_kind mask_kind(struct rewrite *, const struct masks *, ValId);
/* Whether a constant only shows or hides, and every query sees a key: then it
 * equals a boolean mask for all scores. */
bool mask_is_boolean(const Val *);
/* Whether the mask hides with -inf.  With finite numbers of two masks, a query
 * whose keys are all hidden would still compare them. */
bool mask_is_infinite(struct rewrite *, ValId);
/* Whether a constant mask shows element i. */
bool mask_attends_at(const Val *, int64_t i);

#endif
