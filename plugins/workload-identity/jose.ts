/** JOSE, in a module of its own so that it is loaded with the first token and not at startup. */
export {
  createLocalJWKSet,
  errors as joseErrors,
  jwtVerify,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
} from "jose";
