#include "runtime/support/utf8.h"

#include <string.h>

int
utf8_length(const unsigned char *s)
{
	int n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
	      : (s[0] & 0xf0) == 0xe0 ? 3
	      : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)
	    || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	for (int i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool
utf8_is(const char *s, size_t n)
{
	while (n > 0) {
		/* a sequence that is cut off meets the NUL byte behind it */
		unsigned char head[5] = { 0 };
		size_t k;

		memcpy(head, s, n < 4 ? n : 4);
		k = (size_t)utf8_length(head);
		if (k == 0)
			return false;
		s += k;
		n -= k;
	}
	return true;
}

void
utf8_json(FILE *out, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	if (!s) {
		fputs("null", out);
		return;
	}
	putc('"', out);
	while (*s) {
		int n = utf8_length(s);

		if (n == 0)
			fputs("\\ufffd", out);
		else if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			fprintf(out, "\\u%04x", *s);
		else
			fwrite(s, 1, (size_t)n, out);
		s += n ? n : 1;
	}
	putc('"', out);
}
