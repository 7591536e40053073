#include "runtime/ckrun/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* CRC-32C (Castagnoli), masked as in TFRecord so that a checksum of data that
 * hold checksums is a good one. */
static uint32_t
checksum(const uint8_t *x, size_t n)
{
	uint32_t c = ~0u;

	for (size_t i = 0; i < n; i++) {
		c ^= x[i];
		for (int k = 0; k < 8; k++)
			c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
	}
	c = ~c;
	return (c >> 15 | c << 17) + 0xa282ead8u;
}

/* A message of protobuf in the making. */
struct event_message {
	uint8_t x[256];
	size_t n;
};

/* Little-endian. */
static void
put_fixed(struct event_message *m, uint64_t x, int bytes)
{
	for (int i = 0; i < bytes; i++)
		m->x[m->n++] = (uint8_t)(x >> 8 * i);
}

static void
put_varint(struct event_message *m, uint64_t x)
{
	for (; x > 127; x >>= 7)
		m->x[m->n++] = (uint8_t)(x | 128);
	m->x[m->n++] = (uint8_t)x;
}

enum wire_type { VARINT, FIXED64, BYTES, FIXED32 = 5 };

static void
put_event_key(struct event_message *m, unsigned field, enum wire_type w)
{
	put_varint(m, field << 3 | (unsigned)w);
}

static void
put_bytes(struct event_message *m, unsigned field, const void *x, size_t n)
{
	put_event_key(m, field, BYTES);
	put_varint(m, n);
	memcpy(m->x + m->n, x, n);
	m->n += n;
}

/* Begin an event: wall_time. */
static struct event_message
event(void)
{
	struct event_message m = { .n = 0 };
	struct timespec now;
	double sec;
	uint64_t bits;

	clock_gettime(CLOCK_REALTIME, &now);
	sec = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
	memcpy(&bits, &sec, sizeof(bits));
	put_event_key(&m, 1, FIXED64);
	put_fixed(&m, bits, 8);
	return m;
}

/* Length, its checksum, data, their checksum. */
static void
put_record(FILE *f, const struct event_message *m)
{
	struct event_message head = { .n = 0 }, tail = { .n = 0 };

	put_fixed(&head, m->n, 8);
	put_fixed(&head, checksum(head.x, 8), 4);
	put_fixed(&tail, checksum(m->x, m->n), 4);
	fwrite(head.x, 1, head.n, f);
	fwrite(m->x, 1, m->n, f);
	fwrite(tail.x, 1, tail.n, f);
}

FILE *
events_open(const char *folder)
{
	static const char version[] = "brain.Event:2";
	struct event_message m = event();
	size_t n = strlen(folder) + 120;
	char host[64] = "host", *path = malloc(n);
	FILE *f = NULL;

	gethostname(host, sizeof(host) - 1);
	if (path && (!mkdir(folder, 0777) || errno == EEXIST)) {
		snprintf(path, n, "%s/events.out.tfevents.%lld.%ld.%s", folder,
		         (long long)time(NULL), (long)getpid(), host);
		f = fopen(path, "wx");
	}
	if (f) {
		put_bytes(&m, 3, version, sizeof(version) - 1);
		put_record(f, &m);
	}
	free(path);
	return f;
}

void
events_put(FILE *f, uint64_t step, const char *tag, float value)
{
	struct event_message m = event(), of = { .n = 0 }, sum = { .n = 0 };
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_bytes(&of, 1, tag, strlen(tag));
	put_event_key(&of, 2, FIXED32);
	put_fixed(&of, bits, 4);
	put_bytes(&sum, 1, of.x, of.n);
	put_event_key(&m, 2, VARINT);
	put_varint(&m, step);
	put_bytes(&m, 5, sum.x, sum.n);
	put_record(f, &m);
}
