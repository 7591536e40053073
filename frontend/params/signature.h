/* The signature that PyTorch's dynamo exporter leaves in the metadata: which
 * tensors of the module are parameters, buffers and constants.
 */
#ifndef FRONTEND_PARAMS_SIGNATURE_H
#define FRONTEND_PARAMS_SIGNATURE_H

#include "frontend/onnx/flat.h"

struct signature_entry {
	const char *name;               /* in the module */
	char kind;                      /* P, B or C */
	bool there;                     /* as an initializer of the file */
};

struct signature {
	struct signature_entry *entry;  /* sorted by name */
	size_t n;                       /* 0: the file has none */
	bool lost;                      /* parameters are not in the file */
};

/* Read it, and put what the file has lost (nlost, lost, ...) and the buffers
 * that forward updates (mutated) into the flat model, which owns the text. */
void signature_read(struct flat *, struct signature *);
/* What it says about the tensor of that name; NULL: nothing. */
struct signature_entry *signature_find(const struct signature *,
                                       const char *name);
/* Whether PyTorch's optimizer notes that it computed the constant v, and of no
 * parameter. */
bool signature_is_computed(const struct flat *, const struct signature *,
                           const struct flat_val *v);

#endif
