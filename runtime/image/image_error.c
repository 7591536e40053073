/* Errors of an image being read. */
#include "runtime/image/image.h"

ckr_status
image_error(const struct image_reader *r, const char *how)
{
	char text[NAME_TEXT];

	return err_set(r->e, CKR_EFORMAT, "%s: %s", r->path,
	               err_name(text, sizeof(text), how));
}

void
image_throw(struct image_reader *r, const char *name, const char *why)
{
	char text[400];

	snprintf(text, sizeof(text), "cannot be read as %s: %s", name, why);
	r->status = image_error(r, text);
	longjmp(r->failed, 1);
}
