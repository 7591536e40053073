/* The signature that PyTorch's dynamo exporter writes to the metadata.  It
 * lists the module's parameters, buffers and constants.  And which names are
 * the module's, because no exporter invents them.  ckc.torch.export writes it
 * to files of the TorchScript exporter, too, and adds the entry "ckc.frozen",
 * which lists the frozen parameters, one name per line. */
#ifndef FRONTEND_PARAMS_SIGNATURE_H
#define FRONTEND_PARAMS_SIGNATURE_H

#include "frontend/onnx/flat.h"

struct signature_entry {
	const char *name;               /* name in the module */
	char kind;                      /* P(arameter), B(uffer), C(onstant) */
	bool there;                     /* initializer exists in the file */
	bool frozen;                    /* requires no gradient in the module */
};

struct signature {
	struct signature_entry *entry;  /* sorted by name */
	size_t n;                       /* 0: no signature */
	bool lost;                      /* the file lacks some parameters */
	bool noted;                     /* the file has "ckc.frozen" */
};

/* Read the signature.  Stores lost parameters (nlost, lost, ...) and buffers
 * that forward updates (mutated) in the flat model, which owns the text. */
const struct signature *signature_read(struct flat *);
/* The entry of that name; NULL: none. */
struct signature_entry *signature_find(const struct signature *,
                                       const char *name);
/* The first parameter of the module from which PyTorch's optimizer notes that
 * it folded the constant v; the file may lack that parameter.  NULL: none; then
 * *noted says whether it folded v from other values. */
const char *signature_source(const struct flat *, const struct flat_val *v,
                             bool *noted);
/* Whether an exporter invented the name.  TorchScript: numbers,
 * "onnx::MatMul_12", "/layer/Constant_output_0".  Dynamo: "val_12", and
 * "_to_copy_3" for results of ATen ops. */
bool flat_is_made_up(const char *name);
/* Whether a name is a module path of the source, as "block.0.weight". */
bool flat_is_path(const char *name);

#endif
