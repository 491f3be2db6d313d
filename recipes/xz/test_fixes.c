/* Append a record to a decoded index without records. Without the fix of CVE-2026-34743, the index has
   no memory for the record. */
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>

static size_t largest;

static void *allocate(void *opaque, size_t count, size_t size) {
  (void)opaque;
  if (count * size > largest)
    largest = count * size;
  return malloc(count * size);
}

static void release(void *opaque, void *memory) {
  (void)opaque;
  free(memory);
}

int main(void) {
  lzma_allocator allocator = {allocate, release, NULL};
  lzma_index *index = lzma_index_init(NULL);
  uint8_t encoded[64];
  uint64_t limit = UINT64_MAX;
  size_t end = 0, start = 0;

  if (lzma_index_buffer_encode(index, encoded, &end, sizeof encoded) != LZMA_OK ||
      lzma_index_buffer_decode(&index, &limit, &allocator, encoded, &start, end) != LZMA_OK)
    return 2;
  largest = 0;
  if (lzma_index_append(index, &allocator, 100, 100) != LZMA_OK)
    return 2;
  /* The fixed version allocates memory for 512 records at once. */
  fprintf(stderr, "the largest allocation has %zu bytes\n", largest);
  return largest < 512 * 2 * sizeof(lzma_vli);
}
