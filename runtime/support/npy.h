/* The header of .npy files: "\x93NUMPY", version, length, and a dictionary of
 * Python as text,
 *	{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } */
#ifndef RUNTIME_SUPPORT_NPY_H
#define RUNTIME_SUPPORT_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPY_HEAD = 12, NPY_TEXT_MAX = 1 << 16, NPY_MAX_RANK = 8 };

struct npy {
	char descr[64];
	int dtype;                      /* row of dtypes.h, from 1 */
	bool legal, plain, fortran;     /* plain: no record */
	int rank;
	int64_t dim[NPY_MAX_RANK];
	char fault[160];
};

/* From the first NPY_HEAD bytes, where the dictionary begins and its length;
 * false: no .npy file of a known version. */
bool npy_place(const unsigned char *head, size_t *at, size_t *n);
/* The dictionary, ended by NUL, text[n]; false: the fault says why, and legal
 * whether only we do not support what the file holds. */
bool npy_parse(struct npy *, char *text, size_t n);

#endif
