/* Finds the rows of data that caused an error in a step or an evaluation. */
#include "runtime/data/data.h"

#include <math.h>
#include <stdlib.h>

static void
describe_row(const struct data *d, const struct fed_input *it, uint64_t row,
             char *buf, size_t size)
{
	const struct data_column *c = dataset_column(&d->set, it->array);
	const struct data_shard *p = dataset_shard(c, row * it->row);
	char place[NAME_TEXT + 4], name[NAME_TEXT];

	snprintf(buf, size, "%s%s, row %llu (input '%s')",
	         p->file->path, array_place(place, sizeof(place), p->array),
	         (unsigned long long)(row - p->first / it->row),
	         err_name(name, sizeof(name), it->in.name));
}

/* The element of an item's input that is this number; its count: none. */
static uint64_t
find_element(const struct fed_input *it, int64_t number)
{
	size_t size = dtype_row[it->in.dtype].nbytes;
	const char *x = it->in.data;
	uint64_t i = 0;

	while (i < it->in.nelem
	       && (int64_t)dtype_double(it->in.dtype, x + i * size) != number)
		i++;
	return i;
}

bool
data_find_number(const struct data *d, int64_t number, char *buf, size_t size)
{
	const struct fed_input *found = NULL;

	for (size_t k = 0; k < d->pair.n; k++) {
		const struct fed_input *it = &d->pair.item[k];

		if (it->source != FROM_SAMPLES || pair_kind(it->in.dtype) != 'i'
		    || find_element(it, number) == it->in.nelem)
			continue;
		if (found)
			return false;
		found = it;
	}
	if (!found || !found->row)
		return false;
	describe_row(d, found, data_row(d, found, data_position(d), 0,
	                                find_element(found, number)
	                                / found->row), buf, size);
	return true;
}

/* Whether a row of an item has a number that is not finite; x has room for
 * it. */
static bool
row_has_nonfinite(struct data *d, const struct fed_input *it, uint64_t row,
                  double *x)
{
	if (dataset_read(&d->set, it->array, row * it->row, it->row, CKR_F64,
	                 x, &d->err) != CKR_OK)
		return false;
	for (uint64_t i = 0; i < it->row; i++)
		if (!isfinite(x[i]))
			return true;
	return false;
}

bool
data_print_nonfinite(struct data *d, uint64_t n, uint64_t samples, FILE *f)
{
	char where[2 * NAME_TEXT + 400];
	bool found = false;

	for (size_t k = 0; k < d->pair.n && !found; k++) {
		const struct fed_input *it = &d->pair.item[k];
		uint64_t rows = it->rows * samples / d->rows;
		double *x;

		if (it->source != FROM_SAMPLES
		    || pair_kind(it->array->dtype) != 'f')
			continue;
		x = malloc((it->row + 1) * sizeof(*x));
		for (uint64_t r = 0; x && r < rows && !found; r++) {
			uint64_t row = data_row(d, it, n,
			                        (uint32_t)(r / it->rows),
			                        r % it->rows);

			found = row_has_nonfinite(d, it, row, x);
			if (found)
				describe_row(d, it, row, where, sizeof(where));
		}
		free(x);
	}
	if (found)
		fprintf(f, "; %s contains a non-finite value", where);
	return found;
}
