/* The signature that PyTorch's dynamo exporter writes to the metadata.  It
 * lists the module's parameters, buffers and constants. */
#ifndef FRONTEND_PARAMS_SIGNATURE_H
#define FRONTEND_PARAMS_SIGNATURE_H

#include "frontend/onnx/flat.h"

struct signature_entry {
	const char *name;               /* name in the module */
	char kind;                      /* P(arameter), B(uffer), C(onstant) */
	bool there;                     /* initializer exists in the file */
};

struct signature {
	struct signature_entry *entry;  /* sorted by name */
	size_t n;                       /* 0: no signature */
	bool lost;                      /* the file lacks some parameters */
};

/* Read the signature.  Stores lost parameters (nlost, lost, ...) and buffers
 * that forward updates (mutated) in the flat model, which owns the text. */
void signature_read(struct flat *, struct signature *);
/* The entry of that name; NULL: none. */
struct signature_entry *signature_find(const struct signature *,
                                       const char *name);
/* Whether PyTorch's optimizer notes that it folded the constant v from values
 * other than parameters. */
bool signature_is_computed(const struct flat *, const struct signature *,
                           const struct flat_val *v);

#endif
