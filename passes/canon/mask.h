/* The keys that constant attention masks hide: mask_verdict.c, for
 * match_mask.c only. */
#ifndef CANON_MASK_H
#define CANON_MASK_H

#include "passes/canon/match.h"

#define MASK_HIDDEN (-1e4)

enum mask_verdict { UNSEEN, HIDES_NOTHING, CAUSAL, BOOLEAN, OTHER };

/* What a constant or a formula does as a mask; masks are large and shared by
 * layers, so it is found once.  BOOLEAN: as mask_is_boolean. */
enum mask_verdict mask_verdict(struct rewrite *, const struct masks *, ValId);
/* Whether a constant only shows and hides, and every query sees a key: the same
 * as a boolean mask whatever the scores. */
bool mask_is_boolean(const Val *);
/* Whether it adds -inf where it hides; a finite number beside another mask's
 * leaves a query from which both hide all keys comparing them. */
bool mask_hides_for_good(struct rewrite *, ValId);
/* Whether a constant shows element i. */
bool mask_shows(const Val *, int64_t i);

#endif
