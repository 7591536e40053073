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
	bool legal, plain, fortran;     /* plain: the type is not a record */
	int rank;
	int64_t dim[NPY_MAX_RANK];
	char fault[160];
};

/* Find offset and length of the dictionary from the first NPY_HEAD bytes;
 * false: not an .npy file of a known version. */
bool npy_place(const unsigned char *head, size_t *at, size_t *n);
/* Parse the dictionary, which ends with NUL at text[n].  False: `fault` has the
 * reason; `legal` tells a valid file that is not supported from an invalid one.
 */
bool npy_parse(struct npy *, char *text, size_t n);

#endif
