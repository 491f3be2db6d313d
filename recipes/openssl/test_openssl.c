/* Check the version, the directories, one fix, and the digests and ciphers that Python's ssl and
   hashlib use. The arguments are the expected version and OPENSSLDIR. */
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(int holds, const char *what) {
  if (!holds) {
    fprintf(stderr, "%s\n", what);
    failures++;
  }
}

/* Make a Diffie-Hellman key in the group with p = 23 and g = 2, whose order is 11. The key contains
   q as the order. */
static EVP_PKEY *make_key(unsigned q) {
  OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "DHX", NULL);
  const char *names[] = {OSSL_PKEY_PARAM_FFC_P, OSSL_PKEY_PARAM_FFC_G, OSSL_PKEY_PARAM_FFC_Q,
                         OSSL_PKEY_PARAM_PUB_KEY, OSSL_PKEY_PARAM_PRIV_KEY};
  unsigned values[] = {23, 2, q, 4, 2};
  EVP_PKEY *key = NULL;

  for (int i = 0; i < 5; i++) {
    BIGNUM *number = BN_new();
    BN_set_word(number, values[i]);
    OSSL_PARAM_BLD_push_BN(builder, names[i], number);
  }
  EVP_PKEY_fromdata_init(context);
  EVP_PKEY_fromdata(context, &key, EVP_PKEY_KEYPAIR, OSSL_PARAM_BLD_to_param(builder));
  return key;
}

static int accepts(EVP_PKEY *own, EVP_PKEY *peer) {
  EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(own, NULL);
  return EVP_PKEY_derive_init(context) > 0 && EVP_PKEY_derive_set_peer_ex(context, peer, 0) > 0;
}

int main(int count, char **arguments) {
  const char *digests[] = {"md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha512-256",
                           "sha3-224", "sha3-256", "sha3-384", "sha3-512", "shake128", "shake256",
                           "blake2b512", "blake2s256", "md5-sha1", "ripemd160", "md4"};
  const char *ciphers[] = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                           "TLS_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256",
                           "ECDHE-RSA-CHACHA20-POLY1305", "DHE-RSA-AES256-GCM-SHA384",
                           "AES128-SHA"};
  char all[10000] = "";
  EVP_PKEY *eleven, *seven;
  SSL *ssl;

  if (count != 3)
    return 2;
  expect(strcmp(OpenSSL_version(OPENSSL_VERSION_STRING), arguments[1]) == 0,
         "the version differs from the first argument");
  expect(strstr(OpenSSL_version(OPENSSL_DIR), arguments[2]) != NULL,
         "the directory differs from the second argument");
  expect(strcmp(X509_get_default_cert_dir(), "/etc/ssl/certs") == 0,
         "the default directory of certificates is not /etc/ssl/certs");

  expect(OSSL_PROVIDER_load(NULL, "default") && OSSL_PROVIDER_load(NULL, "legacy"),
         "a provider does not load");
  for (size_t i = 0; i < sizeof digests / sizeof *digests; i++)
    expect(EVP_MD_fetch(NULL, digests[i], NULL) != NULL, digests[i]);

  ssl = SSL_new(SSL_CTX_new(TLS_method()));
  for (int i = 0; SSL_get_cipher_list(ssl, i); i++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s:", SSL_get_cipher_list(ssl, i));
  for (size_t i = 0; i < sizeof ciphers / sizeof *ciphers; i++)
    expect(strstr(all, ciphers[i]) != NULL, ciphers[i]);

  /* CVE-2026-42770: OpenSSL checked a peer's key with the order that the peer's key contains. */
  eleven = make_key(11), seven = make_key(7);
  expect(eleven && seven && accepts(eleven, eleven), "a key with the correct order is refused");
  expect(!accepts(eleven, seven), "CVE-2026-42770 is not fixed");
  return failures != 0;
}
