// A certified OpenID provider on a loopback port (npm oidc-provider): clients register themselves, access tokens are JWTs for one resource.
//   node provider.mjs '{"folder":…,"resource":…}'
// Prints its issuer, and ends with its standard input. Any login and password will do.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const options = JSON.parse(process.argv[2]);
const require = createRequire(path.join(options.folder, 'package.json'));
const { default: Provider, errors } = await import(pathToFileURL(require.resolve('oidc-provider')));
const SCOPES = 'run files network admin';

function key(kid, alg, ...how) {
  return { ...generateKeyPairSync(...how).privateKey.export({ format: 'jwk' }), kid, alg, use: 'sig' };
}

const server = createServer();
await new Promise((listens) => { server.listen(0, '127.0.0.1', listens); });
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  jwks: { keys: [key('one', 'ES256', 'ec', { namedCurve: 'P-256' }), key('two', 'RS256', 'rsa', { modulusLength: 2048 })] },
  cookies: { keys: ['of the tests'] },
  scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
  // The SDKs register for the scopes of their first request, and ask for more of them later.
  extraClientMetadata: { properties: ['any_scope'], validator: (_ctx, _key, _value, metadata) => { delete metadata.scope; } },
  extraTokenClaims: () => ({ groups: ['people'] }),
  features: {
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => {
        if (resource !== options.resource) throw new errors.InvalidTarget();
        return { scope: SCOPES, audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 3600, jwt: { sign: { alg: 'ES256' } } };
      },
    },
  },
});
server.on('request', provider.callback());
console.log(issuer);
process.stdin.resume().on('end', () => process.exit(0));
