#include "runtime/data/augment.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/rng.h"
#include "runtime/support/number.h"

enum { FEW_CHANNELS = 4, MAX_CROP = 4096 };

ckr_status
augmentation_parse(struct augmentation *a, const char *text, struct err *e)
{
	char shown[NAME_TEXT], word[40];
	bool ok = *text;

	*a = (struct augmentation){ 0 };
	for (const char *s = text; *s && ok; s += strcspn(s, ",")) {
		uint64_t n;

		s += *s == ',';
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(s, ","), s);
		if (!strcmp(word, "flip"))
			a->flip = true;
		else if (!strncmp(word, "crop=", 5)
		         && number_whole(word + 5, MAX_CROP, &n) && n)
			a->crop = (uint32_t)n;
		else
			ok = false;
	}
	return ok ? CKR_OK
	       : err_set(e, CKR_EARG, "--augment '%s': expected flip, crop=N "
	                 "or both: flip,crop=4; N is 1 to %d pixels",
	                 err_name(shown, sizeof(shown), text), MAX_CROP);
}

bool
image_layout_find(struct image_layout *m, const struct array *a, bool hwc,
                  bool chw)
{
	const int64_t *d = a->dim;
	uint64_t h = (uint64_t)d[1], w = (uint64_t)d[2], c = (uint64_t)d[3];

	if (a->rank == 3) {
		*m = (struct image_layout){ h, w, 1, w, 1, 1 };
		return true;
	}
	if (a->rank != 4)
		return false;
	if (!hwc && !chw) {
		hwc = c <= FEW_CHANNELS && h > FEW_CHANNELS;
		chw = h <= FEW_CHANNELS && c > FEW_CHANNELS;
	}
	if (hwc == chw)
		return false;
	*m = hwc ? (struct image_layout){ h, w, c, w * c, c, 1 }
	     : (struct image_layout){ w, c, h, c, 1, w * c };
	return true;
}

/* A line of a channel, from the same line of the image before. */
static void
move_line(const struct image_layout *m, bool flip, int64_t by,
          const unsigned char *from, unsigned char *to)
{
	for (uint64_t x = 0; x < m->width; x++) {
		int64_t at = (int64_t)(flip ? m->width - 1 - x : x) + by;

		to[x * m->pixel] = at < 0 || at >= (int64_t)m->width ? 0
			: from[(uint64_t)at * m->pixel];
	}
}

void
augment_image(const struct augmentation *a, const struct image_layout *m,
              uint64_t seed, uint64_t visit, const unsigned char *from,
              unsigned char *to)
{
	uint64_t range = 2 * (uint64_t)a->crop + 1;
	bool flip = a->flip && rng_below(seed, RNG_AUGMENT, 3 * visit, 2);
	int64_t down = (int64_t)rng_below(seed, RNG_AUGMENT, 3 * visit + 1,
	                                  range) - (int64_t)a->crop;
	int64_t right = (int64_t)rng_below(seed, RNG_AUGMENT, 3 * visit + 2,
	                                   range) - (int64_t)a->crop;

	for (uint64_t c = 0; c < m->channels; c++)
		for (uint64_t y = 0; y < m->height; y++) {
			int64_t at = (int64_t)y + down;
			unsigned char *line = to + c * m->channel + y * m->line;

			if (at >= 0 && at < (int64_t)m->height) {
				move_line(m, flip, right, from + c * m->channel
				          + (uint64_t)at * m->line, line);
				continue;
			}
			for (uint64_t x = 0; x < m->width; x++)
				line[x * m->pixel] = 0;
		}
}
