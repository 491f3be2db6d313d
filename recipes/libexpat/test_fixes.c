/* Test some of the fixes that the file `fixes` lists. */
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                            \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                      \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

/* CVE-2024-8176: the expansion of nested entities recursed once per entity, so it could overflow the
   stack. */
enum { ENTITIES = 100000 };

static int parse_entity_chain(void) {
  XML_Parser parser = XML_ParserCreate(NULL);
  char *document = malloc(ENTITIES * 48 + 200), *end = document;
  int status;

  end += sprintf(end, "<!DOCTYPE d [<!ENTITY e0 'x'>");
  for (int i = 1; i < ENTITIES; ++i)
    end += sprintf(end, "<!ENTITY e%d '&e%d;'>", i, i - 1);
  end += sprintf(end, "]><d>&e%d;</d>", ENTITIES - 1);
  status = XML_Parse(parser, document, (int)(end - document), 1);
  XML_ParserFree(parser);
  free(document);
  return status;
}

int main(void) {
  XML_Parser parser = XML_ParserCreate(NULL);

  /* CVE-2024-45490 */
  CHECK(XML_GetBuffer(parser, 8) != NULL);
  CHECK(XML_ParseBuffer(parser, -1, 0) == XML_STATUS_ERROR);
  CHECK(XML_GetErrorCode(parser) == XML_ERROR_INVALID_ARGUMENT);
  /* CVE-2024-50602 */
  CHECK(XML_ParserReset(parser, NULL));
  CHECK(XML_StopParser(parser, XML_TRUE) == XML_STATUS_ERROR);
  /* CVE-2023-52425: the fix adds this function. */
  CHECK(XML_SetReparseDeferralEnabled(parser, XML_TRUE));
  XML_ParserFree(parser);
  CHECK(parse_entity_chain() == XML_STATUS_OK);
  return 0;
}
