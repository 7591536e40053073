/* The matched pattern of the last product and its loss (fuse_classifier.c). */
#ifndef PASSES_FUSE_CLASSIFIER_H
#define PASSES_FUSE_CLASSIFIER_H

#include "passes/fuse/edit.h"
#include "passes/fuse/fuse.h"

enum { USES_MAX = 8 };

struct classifier_end {
	struct edit *e;
	const struct target *target;
	bool copies;                    /* the user asked for copies of weights
	                                 * in 16 bits */
	NodeId product, sce, grad;      /* forward product, loss, gradient of
	                                 * the loss */
	NodeId stats, gather;           /* statistics of a rank's classes and
	                                 * their all_gather; 0: classes are
	                                 * whole */
	NodeId dx, dw, db;              /* gradients of the product's operands;
	                                 * 0: absent */
	NodeId tail[USES_MAX];          /* nodes from sce to the loss */
	int ntail;
	NodeId use[2 * USES_MAX];       /* scratch of reach() */
	ValId via[2 * USES_MAX];
	int nuse;
	NodeId view[USES_MAX];          /* reshapes that die with it */
	int nview;
};

/* fuse_vocab.c: chunks of rows one after the other in place of the nodes that
 * were found.  False after a diagnostic. */
bool unroll_classifier(struct classifier_end *);

#endif
