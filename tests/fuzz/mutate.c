/* Damage to files: of any kind, and to protobuf messages field by field.
 *
 * The second kind keeps lengths right all the way up, so that damage reaches
 * what lies behind the parser.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "frontend/onnx/wire.h"

uint32_t
fuzz_draw(struct fuzz_random *r, uint32_t below)
{
	uint64_t z = r->s += UINT64_C(0x9e3779b97f4a7c15);      /* splitmix */

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return below ? (uint32_t)((z >> 32) * below >> 32) : 0;
}

/* ---- any file ---- */

static const char *const numbers[] = {
	"0", "1", "-1", "2", "7", "255", "256", "65535", "2147483647",
	"2147483648", "4294967295", "4294967296", "9223372036854775807",
	"-9223372036854775808", "99999999999999999999", "1e308", "1e-320",
	"nan", "-0",
};

static size_t
splice(uint8_t *data, size_t n, size_t cap, size_t at, size_t gone,
       const void *put, size_t nput)
{
	if (n - gone + nput > cap)
		return n;
	memmove(data + at + nput, data + at + gone, n - at - gone);
	memcpy(data + at, put, nput);
	return n - gone + nput;
}

static size_t
word_end(const uint8_t *data, size_t n, size_t at)
{
	while (at < n && ((data[at] >= '0' && data[at] <= '9')
	                  || (data[at] >= 'a' && data[at] <= 'z')
	                  || (data[at] >= 'A' && data[at] <= 'Z')
	                  || data[at] == '_'))
		at++;
	return at;
}

/* Put one part of the file, a word or a few bytes, in another place. */
static size_t
copy_part(struct fuzz_random *r, uint8_t *data, size_t n, size_t cap)
{
	size_t from = fuzz_draw(r, (uint32_t)n), to = fuzz_draw(r, (uint32_t)n);
	size_t len = word_end(data, n, from) - from, gone;
	uint8_t part[256];

	if (len == 0 || len > sizeof part || fuzz_draw(r, 2))
		len = 1 + fuzz_draw(r, sizeof part);
	if (len > n - from)
		len = n - from;
	gone = fuzz_draw(r, 2) ? word_end(data, n, to) - to : 0;
	memcpy(part, data + from, len);
	return splice(data, n, cap, to, gone, part, len);
}

size_t
fuzz_mutate(struct fuzz_random *r, uint8_t *data, size_t n, size_t cap)
{
	size_t at = fuzz_draw(r, (uint32_t)n + 1), len;
	const char *number = numbers[fuzz_draw(r, sizeof numbers
	                                       / sizeof *numbers)];
	uint8_t byte = (uint8_t)fuzz_draw(r, 256);

	if (n == 0)
		return splice(data, n, cap, 0, 0, number, strlen(number));
	switch (fuzz_draw(r, 9)) {
	case 0:
		if (at < n)
			data[at] = byte;
		return n;
	case 1:
		if (at < n)
			data[at] ^= (uint8_t)(1u << byte % 8);
		return n;
	case 2:
		if (at < n)
			data[at] = byte & 1 ? 0xff : 0;
		return n;
	case 3:
		return splice(data, n, cap, at, 0, &byte, 1);
	case 4:
		len = 1 + fuzz_draw(r, 16);
		if (len > n - at)
			len = n - at;
		return splice(data, n, cap, at, len, "", 0);
	case 5:
		return splice(data, n, cap, at, word_end(data, n, at) - at,
		              number, strlen(number));
	case 6:
		return fuzz_draw(r, 4) ? n : at;
	default:
		return copy_part(r, data, n, cap);
	}
}

/* ---- protobuf ---- */

enum { DEPTH = 12 };

/* A field and the messages around it, outermost first. */
struct place {
	struct wire_field f;
	int depth;
	struct wire_field up[DEPTH];
};

static bool
is_message(const uint8_t *data, size_t at, size_t end)
{
	struct wire_field f;
	bool any = false;

	for (; at < end; at = f.end, any = true)
		if (wire_next(data, at, end, &f) || f.number > 30)
			return false;
	return any;
}

/* A field at random, of number `only` unless that is 0. */
static bool
choose(struct fuzz_random *r, const uint8_t *data, size_t n, uint32_t only,
       struct place *p)
{
	size_t at = 0, end = n;

	p->depth = 0;
	for (;;) {
		struct wire_field f;
		uint32_t count = 0, hits = 0;

		for (size_t k = at; k < end; k = f.end) {
			if (wire_next(data, k, end, &f))
				return false;
			/* a field in the way must lead on or be the one */
			if (only && f.number == only && !fuzz_draw(r, ++hits)
			    && fuzz_draw(r, 2))
				p->f = f, count = UINT32_MAX;
			else if (count != UINT32_MAX
			         && !fuzz_draw(r, ++count))
				p->f = f;
		}
		if (count == 0)
			return false;
		if (count == UINT32_MAX)
			return true;
		if (p->f.type != 2 || p->depth == DEPTH
		    || !is_message(data, p->f.body, p->f.end)
		    || (!only && fuzz_draw(r, 6) == 0))
			return !only || p->f.number == only;
		p->up[p->depth++] = p->f;
		at = p->f.body;
		end = p->f.end;
	}
}

static size_t
put_varint(uint8_t *out, uint64_t x)
{
	size_t n = 0;

	for (; x >= 0x80; x >>= 7)
		out[n++] = (uint8_t)(x | 0x80);
	out[n++] = (uint8_t)x;
	return n;
}

/* Replace the field at p by put[0..nput) and mend the lengths around it. */
static size_t
replace(uint8_t *data, size_t n, size_t cap, const struct place *p,
        const uint8_t *put, size_t nput)
{
	size_t old = p->f.end - p->f.at, grown = nput;
	uint8_t head[DEPTH][24];
	size_t nhead[DEPTH], total = n - old + nput, at, moved;

	/* new heads, from inside outwards */
	for (int i = p->depth - 1; i >= 0; i--) {
		const struct wire_field *u = &p->up[i];
		size_t len = u->end - u->body - old + grown;

		nhead[i] = put_varint(head[i], (uint64_t)u->number << 3 | 2);
		nhead[i] += put_varint(head[i] + nhead[i], len);
		old = u->end - u->at;
		grown = nhead[i] + len;
		total = n - old + grown;
	}
	if (total > cap)
		return n;
	uint8_t *out = malloc(total + 1);

	at = moved = 0;
	for (int i = 0; i < p->depth; i++) {
		memcpy(out + moved, data + at, p->up[i].at - at);
		moved += p->up[i].at - at;
		memcpy(out + moved, head[i], nhead[i]);
		moved += nhead[i];
		at = p->up[i].body;
	}
	memcpy(out + moved, data + at, p->f.at - at);
	moved += p->f.at - at;
	memcpy(out + moved, put, nput);
	moved += nput;
	memcpy(out + moved, data + p->f.end, n - p->f.end);
	memcpy(data, out, total);
	free(out);
	return total;
}

static uint64_t
odd_number(struct fuzz_random *r, uint64_t was)
{
	static const uint64_t odd[] = {
		0, 1, 2, 3, 4, 5, 7, 8, 16, 64, 100, 1000, 65536, 0x7fffffff,
		0x80000000, 0xffffffff, 0x100000000, INT64_MAX,
		UINT64_C(1) << 62, UINT64_C(1) << 63, UINT64_MAX,
		UINT64_MAX - 1, UINT64_MAX - 2,
	};

	switch (fuzz_draw(r, 4)) {
	case 0:
		return was + 1;
	case 1:
		return was - 1;
	default:
		return odd[fuzz_draw(r, sizeof odd / sizeof *odd)];
	}
}

/* A new field in the place of f, in out; its length, or 0. */
static size_t
new_field(struct fuzz_random *r, const uint8_t *data, size_t n,
          const struct wire_field *f, uint8_t *out, size_t cap)
{
	size_t head = put_varint(out, (uint64_t)f->number << 3
	                         | (uint64_t)f->type);
	size_t len = f->end - f->body;
	struct place other;

	if (f->type == 0)
		return head + put_varint(out + head, odd_number(r, f->value));
	if (f->type != 2) {
		memcpy(out + head, data + f->body, len);
		out[head + fuzz_draw(r, (uint32_t)len)] ^=
			(uint8_t)(1u << fuzz_draw(r, 8));
		return head + len;
	}
	/* contents: those of a field elsewhere, or damaged ones */
	if (len + 64 > cap / 2)
		return 0;
	if (fuzz_draw(r, 2) && choose(r, data, n, fuzz_draw(r, 2) ? f->number
	                              : 0, &other) && other.f.type == 2
	    && other.f.end - other.f.body < cap / 2) {
		f = &other.f;
		len = f->end - f->body;
		head += put_varint(out + head, len);
		memcpy(out + head, data + f->body, len);
		return head + len;
	}
	uint8_t *body = malloc(len + 64);

	memcpy(body, data + f->body, len);
	len = fuzz_mutate(r, body, len, len + 64);
	head += put_varint(out + head, len);
	memcpy(out + head, body, len);
	free(body);
	return head + len;
}

size_t
fuzz_mutate_protobuf(struct fuzz_random *r, uint8_t *data, size_t n,
                     size_t cap)
{
	size_t room = cap + 64, nput = 0, len;
	struct place p, q;
	uint8_t *put;

	if (!choose(r, data, n, 0, &p))
		return n;
	put = malloc(2 * room);
	len = p.f.end - p.f.at;
	switch (fuzz_draw(r, 8)) {
	case 0:                                 /* leave out */
		break;
	case 1:                                 /* repeat */
		memcpy(put, data + p.f.at, len);
		memcpy(put + len, data + p.f.at, len);
		nput = 2 * len;
		break;
	case 2:                                 /* one of the same number */
		if (choose(r, data, n, p.f.number, &q)) {
			nput = q.f.end - q.f.at;
			memcpy(put, data + q.f.at, nput);
			if (fuzz_draw(r, 2)) {
				memcpy(put + nput, data + p.f.at, len);
				nput += len;
			}
			break;
		}
		/* fallthrough */
	default:
		nput = new_field(r, data, n, &p.f, put, room);
		if (!nput) {
			free(put);
			return n;
		}
	}
	n = replace(data, n, cap, &p, put, nput);
	free(put);
	return n;
}

size_t
fuzz_cross_protobuf(struct fuzz_random *r, uint8_t *data, size_t n,
                    size_t cap, const uint8_t *from, size_t nfrom)
{
	struct place p, q;
	size_t len, old;
	uint8_t *put;

	if (!choose(r, from, nfrom, 0, &q)
	    || !choose(r, data, n, q.f.number, &p))
		return n;
	len = q.f.end - q.f.at;
	old = fuzz_draw(r, 2) ? p.f.end - p.f.at : 0;
	put = malloc(len + old + 1);
	memcpy(put, from + q.f.at, len);
	memcpy(put + len, data + p.f.at, old);
	n = replace(data, n, cap, &p, put, len + old);
	free(put);
	return n;
}
