"""Secrets to plant and texts that hold none.

Every secret is put together when the tests run, so that no file of this repository holds one.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable

LETTERS = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
BASE64 = LETTERS + "+/"
URL = LETTERS + "-_"


def planted() -> list[tuple[str, str]]:
    """Pairs of a rule and a secret it must find, several for each."""
    rng = random.Random(19)
    return [(rule, make(rng)) for rule, make, times in _MAKERS for _ in range(times)] + _contexts(rng)


def aws_key() -> str:
    """The key that Amazon's own documentation shows."""
    return "AK" + "IA" + "IOSFODNN7" + "EXAMPLE"


def row_19() -> dict[str, str]:
    """One of each sort that row 19 of the faults names."""
    wanted = ("aws-access-key", "github-token", "anthropic-key", "openai-key", "private-key", "jwt", "password-in-url")
    found: dict[str, str] = {}
    for rule, secret in planted():
        if rule in wanted:
            found.setdefault(rule, secret)
    return found


def _some(alphabet: str, number: int) -> Callable[[random.Random], str]:
    return lambda rng: "".join(rng.choice(alphabet) for _ in range(number))


def _after(prefix: str, alphabet: str, number: int) -> Callable[[random.Random], str]:
    return lambda rng: prefix.replace("|", "") + _some(alphabet, number)(rng)


def _joined(*parts: str | tuple[str, int]) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        return "".join(
            part.replace("|", "") if isinstance(part, str) else _some(part[0], part[1])(rng) for part in parts
        )

    return make


def _jwt(rng: random.Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    head, body = part({"alg": "HS256", "typ": "JWT"}), part({"sub": str(rng.randrange(10**9)), "iat": 1516239022})
    return f"{head}.{body}.{_some(URL, 43)(rng)}"


def _pem(kind: str, between: str = "\n") -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        lines = between.join(_some(BASE64, 64)(rng) for _ in range(3))
        dashes = "-" * 5
        return f"{dashes}BEGIN {kind}PRIVATE KEY{dashes}{between}{lines}{between}{dashes}END {kind}PRIVATE KEY{dashes}"

    return make


def _url(scheme: str) -> Callable[[random.Random], str]:
    return lambda rng: f"{scheme}:" + f"//app:{_some(LETTERS, 14)(rng)}@db.example.com:5432/main"


# A bar keeps a prefix from being a prefix in this file.
_MAKERS: list[tuple[str, Callable[[random.Random], str], int]] = [
    ("aws-access-key", _after("AK|IA", UPPER, 16), 3),
    ("aws-access-key", _after("AS|IA", UPPER, 16), 1),
    ("aws-access-key", lambda _: aws_key(), 1),
    ("github-token", _after("gh|p_", LETTERS, 36), 2),
    ("github-token", _after("gh|o_", LETTERS, 36), 1),
    ("github-token", _after("gh|u_", LETTERS, 36), 1),
    ("github-token", _after("gh|s_", LETTERS, 36), 1),
    ("github-token", _after("gh|r_", LETTERS, 36), 1),
    ("github-token", _joined("github|_pat_", (LETTERS, 22), "_", (LETTERS, 59)), 2),
    ("gitlab-token", _after("gl|pat-", URL, 20), 2),
    ("gitlab-token", _after("gl|rt-", URL, 20), 1),
    ("slack-token", _joined("xo|xb-", ("0123456789", 12), "-", ("0123456789", 12), "-", (LETTERS, 24)), 2),
    ("slack-token", _joined("xo|xp-", ("0123456789", 12), "-", ("0123456789", 12), "-", (HEX, 32)), 1),
    (
        "slack-webhook",
        _joined("https://hooks.sla|ck.com/services/T", (UPPER, 8), "/B", (UPPER, 8), "/", (LETTERS, 24)),
        1,
    ),
    ("stripe-key", _after("sk|_live_", LETTERS, 24), 2),
    ("stripe-key", _after("rk|_test_", LETTERS, 24), 1),
    ("google-api-key", _after("AI|za", URL, 35), 2),
    ("google-oauth-secret", _after("GOC|SPX-", URL, 28), 1),
    ("google-oauth-token", _after("ya|29.a0", URL, 120), 1),
    ("npm-token", _after("np|m_", LETTERS, 36), 2),
    ("pypi-token", _after("py|pi-AgEIcHlwaS5vcmc", URL, 120), 1),
    ("openai-key", _after("s|k-proj-", URL, 120), 3),
    ("openai-key", _after("s|k-svcacct-", URL, 80), 1),
    ("openai-key", _joined("s|k-", (LETTERS, 20), "T3Blbk|FJ", (LETTERS, 20)), 2),
    ("openai-key", _after("s|k-", HEX, 32), 1),
    ("anthropic-key", _after("s|k-ant-api03-", URL, 95), 3),
    ("anthropic-key", _after("s|k-ant-oat01-", URL, 86), 1),
    ("openrouter-key", _after("s|k-or-v1-", HEX, 64), 1),
    ("huggingface-token", _after("h|f_", string.ascii_letters, 34), 2),
    ("groq-key", _after("gs|k_", LETTERS, 52), 1),
    ("xai-key", _after("xa|i-", LETTERS, 80), 1),
    ("perplexity-key", _after("ppl|x-", LETTERS, 48), 1),
    ("replicate-token", _after("r|8_", LETTERS, 37), 1),
    ("nvidia-key", _after("nv|api-", URL, 64), 1),
    ("cerebras-key", _after("cs|k-", string.ascii_lowercase + string.digits, 48), 1),
    ("langsmith-key", _joined("lsv|2_pt_", (HEX, 32), "_", (HEX, 10)), 1),
    ("tavily-key", _after("tv|ly-", LETTERS, 32), 1),
    ("private-key", _pem(""), 1),
    ("private-key", _pem("RSA "), 1),
    ("private-key", _pem("EC ", between="\\n"), 1),
    ("private-key", _pem("OPENSSH ", between="\n  "), 1),
    ("private-key", _pem("ENCRYPTED "), 1),
    ("age-key", _after("AGE-SEC|RET-KEY-1", UPPER, 58), 1),
    ("jwt", _jwt, 3),
    ("password-in-url", _url("postgres"), 1),
    ("password-in-url", _url("mongodb+srv"), 1),
    ("password-in-url", _url("amqps"), 1),
    ("password-in-url", _url("https"), 1),
    ("password-in-url", lambda _: "postgres" + "://u:p" + "@h", 1),
    ("password-in-url", lambda _: "redis" + "://:p4ss" + "@cache:6379/0", 1),
    ("azure-storage-key", _joined("Account|Key=", (BASE64, 86), "=="), 1),
    ("azure-client-secret", _joined((LETTERS, 3), "8|Q~", (LETTERS, 34)), 1),
    ("twilio-key", _after("S|K", HEX, 32), 1),
    ("sendgrid-key", _joined("S|G.", (URL, 22), ".", (URL, 43)), 1),
    ("telegram-token", _joined(("123456789", 10), ":A|A", (URL, 33)), 1),
    ("discord-token", _joined("M|", (LETTERS, 23), ".", (LETTERS, 6), ".", (URL, 38)), 1),
    ("databricks-token", _after("dap|i", HEX, 32), 1),
    ("digitalocean-token", _after("do|p_v1_", HEX, 64), 1),
    ("shopify-token", _after("shp|at_", HEX, 32), 1),
    ("vault-token", _after("hv|s.", URL, 90), 1),
    ("linear-key", _after("lin|_api_", LETTERS, 40), 1),
    ("notion-token", _after("nt|n_", LETTERS, 46), 1),
    ("docker-token", _after("dckr|_pat_", URL, 27), 1),
    ("sentry-token", _after("sntr|yu_", HEX, 64), 1),
    ("grafana-token", _joined("gls|a_", (LETTERS, 32), "_", (HEX, 8)), 1),
    ("postman-key", _joined("PMA|K-", (HEX, 24), "-", (HEX, 34)), 1),
    ("tailscale-key", _joined("tsk|ey-auth-", (LETTERS, 16), "-", (LETTERS, 32)), 1),
    ("atlassian-token", _after("ATA|TT3xFfGF0", URL, 170), 1),
]


def _contexts(rng: random.Random) -> list[tuple[str, str]]:
    """Secrets that only their context gives away."""
    word, long = _some(LETTERS, 14), _some(LETTERS, 32)
    credentials = base64.b64encode(f"ada:{word(rng)}".encode()).decode()
    return [
        ("assigned-secret", f'pass{""}word = "{word(rng)}"'),
        ("assigned-secret", f"DB_PASSWORD={word(rng)}7!"),
        ("assigned-secret", f"aws_secret_access_key = {_some(BASE64, 39)(rng)}7"),
        ("assigned-secret", f'"client_secret": "{long(rng)}"'),
        ("assigned-secret", f"MISTRAL_API_KEY={long(rng)}"),
        ("assigned-secret", f"api-key: {_some(HEX, 32)(rng)}"),
        ("assigned-secret", f"The password is {word(rng)}4&T."),
        ("assigned-secret", f"auth_token := `{long(rng)}`"),
        ("bearer-token", f"curl -H 'Authorization: Bearer {long(rng)}' https://api.example.com"),
        ("basic-credentials", f"Authorization: Basic {credentials}"),
        ("password-option", f"curl -s -u ada:{word(rng)}7 https://example.com"),
        ("password-option", f"mysql --host db --password={word(rng)}7"),
        ("npm-token", f"//registry.npmjs.org/:_auth{''}Token={long(rng)}"),
        ("docker-auth", f'{{"auths": {{"ghcr.io": {{"auth": "{credentials}"}}}}}}'),
        ("netrc-password", f"machine example.com\n  login ada\n  password {word(rng)}"),
    ]


def clean() -> list[str]:
    """Texts that hold no secret, however much some look like it: prose, code, URLs, names, digests."""
    rng = random.Random(20)
    return [*_PROSE, *_CODE, *_LINKS, *_NAMES, *_STAND_INS, *_digests(rng)]


def _digests(rng: random.Random) -> list[str]:
    forms = (
        "Fixed in commit {sha1}.",
        "sha256: {sha256}",
        "blob {sha1} is the content, tree {other} the folder",
        "The digest of the archive is {sha256}, 3.1 MB.",
        '"integrity": "sha512-{b64}=="',
        "image: ghcr.io/example/app@sha256:{sha256}",
        "id: {uuid}",
        "request {uuid} took 310 ms",
        "trace_id={md5} span_id={span}",
        'ETag: W/"{md5}"',
        "ulid {ulid} sorts by time",
        "![dot](data:image/png;base64,{b64}==)",
        "md5sum says {md5}  backup.tar",
        "password_hash: {sha256}",
        "token_id: {uuid}",
        "secret_sha256 = {sha256}",
        "the memory use-postgresql-{slug} replaces chose-mysql-{slug}",
        "cache key: {sha1}",
    )
    return [_digest(form, rng) for form in forms for _ in range(3)]


def _digest(form: str, rng: random.Random) -> str:
    hexes = {"sha1": 40, "other": 40, "sha256": 64, "md5": 32, "span": 16}
    values = {name: _some(HEX, number)(rng) for name, number in hexes.items()}
    parts = (8, 4, 4, 4, 12)
    return form.format(
        **values,
        b64=_some(BASE64, 86)(rng),
        uuid="-".join(_some(HEX, number)(rng) for number in parts),
        ulid="01" + _some("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24)(rng),
        slug=_some(string.ascii_lowercase + string.digits, 6)(rng),
    )


_PROSE = [
    "We chose PostgreSQL for transactions because the outbox needs them.",
    "The risk-adjusted-return-on-capital report is due on Friday.",
    "Ask before you rotate the API key: the staging deployment caches it for an hour.",
    "The password must have at least 8 characters and one digit.",
    "The password is stored in the vault, never in the repository.",
    *(
        "The password is required, and is changed monthly.",
        "Das Passwort ist abgelaufen.",
        "Le mot de passe est dans 1Password.",
    ),
    *(
        "The password is valid for 90days.",
        "The password of the user is argon2id hashed.",
        "Passwort: mindestens 12 Zeichen",
    ),
    *("The password for staging is in 1Password.", "contraseña: mínimo 8 caracteres", "Пароль — не менее 8 символов"),
    *("密码长度是8个字符以上的", "パスワードは90日ごとに変更します", "The password of db2 is kept in secrets/db2.env."),
    "Passwords are hashed with bcrypt before they reach the database.",
    "A token is a word or a piece of one; the model takes 200,000 of them.",
    "Token usage: 12,345 input, 678 output.",
    "max_tokens: 8192, temperature: 0.2",
    "The secret of a good review is patience.",
    "Secret scanning found nothing in 412 files.",
    "The API key is read from the environment variable OPENAI_API_KEY.",
    "Keys that begin with sk- are OpenAI's; those with sk-ant- are Anthropic's.",
    "A GitHub token begins with ghp_, an AWS access key with AKIA.",
    "We had a task-oriented-dialogue-system-2024 evaluation last week.",
    "Use `sk-...` as the placeholder in examples.",
    "scikit-learn is imported as sklearn; the docs call it sk-learn-ensemble-methods.",
    "Disk-backed and desk-bound work: ask-me-anything-session-notes-2025.",
    "The private key never leaves the hardware token.",
    "A PEM file begins with `-----BEGIN CERTIFICATE-----`.",
    "Do not paste text such as `-----BEGIN PRIVATE KEY-----` into an issue.",
    "Bearer tokens expire after fifteen minutes; refresh tokens after a day.",
    "Basic authentication is off; the proxy adds the Authorization header.",
    "Sign in with your user name and password, then choose the workspace.",
    "Password: required. User name: optional.",
    "password = secret is what the old documentation said; it was never true.",
    "The credentials are in 1Password under 'staging'.",
    "Access keys are rotated every 90 days by the platform team.",
    "The next page token is opaque; do not parse it.",
    "We keep the sort key and the partition key apart.",
    "The foreign key is named fk_orders_customer_id_2024.",
    "A public key may be shared; the matching private one may not.",
    "The passphrase is asked for at start and kept in memory only.",
    "Machine translation improved; login with the usual password afterwards.",
    "Author: Ines Mbeki. Reviewed-by: Tomasz. See notes of 2026-03-01T10:00:00Z.",
    "Kestrel emits status 0xDEADBEEF when the watchdog fires twice in 300 ms.",
    "Tel. +49 30 901820, room B-1234567890, invoice 2026-000123456789.",
    "The quick brown fox jumps over the lazy dog 1234567890 times.",
    "Das Passwort steht im Tresor; 密码 is Chinese for password, пароль is Russian.",
    "The İstanbul office and the ﬁrst floor keep their keys with the porter.",
    "Emoji 🔑 for keys, 🔒 for locks, 👩‍💻 for people.",
    "Session affinity uses a cookie; the CSRF token changes with each form.",
    "Idempotency-Key: order-2026-03-01-0001",
    "EOS token: </s>, PAD token: <pad>, UNK token: [UNK]",
    "The design token color-background-primary-2 replaces $blue-500.",
    "Lesson: a lost update is found by comparing the sha256 that the caller last read.",
]
_CODE = [
    'password = os.environ["DB_PASSWORD"]',
    'password = getpass.getpass("Password: ")',
    "password: str | None = None",
    "def login(user: str, password: str) -> Token: ...",
    "login(user=name, password=password2)",
    "token = create_token(user_id=42, scope='read')",
    "token = request.headers['Authorization'].split()[1]",
    "self.token = token or settings.api_token_v2",
    "api_key = config.get('api_key', '')",
    "API_KEY=${API_KEY:?set it first}",
    "api_key: ${{ secrets.OPENAI_API_KEY }}",
    "client = OpenAI(api_key=os.getenv('OPENAI_API_KEY'))",
    "secret_key = settings.SECRET_KEY_V2",
    "if password == expected_password_1: return True",
    "access_key_id: str = field(repr=False)",
    '<div class="sk-spinner sk-spinner-double-bounce sk-double-bounce2"></div>',
    ".sk-fading-circle .sk-circle12:before { animation-delay: -0.1s }",
    ".sk-cube-grid .sk-cube9 { animation: sk-cubeGridScaleDelay 1.3s infinite }",
    "import { SkeletonLoader } from 'sk-skeleton-loader-component-library'",
    "const token = await getAccessTokenSilently({ audience: 'api2' });",
    "const { data: { accessToken } } = await useSession2();",
    "token: 'x'.repeat(40),",
    "env:\n  - name: DB_PASSWORD\n    valueFrom:\n      secretKeyRef:\n        name: db-v2\n        key: password",
    'kubectl create secret generic db --from-literal=password="$DB_PASSWORD"',
    'docker login -u "$USER" --password-stdin < token.txt',
    'curl -u "$USER:$TOKEN" https://api.example.com/v1/items',
    'curl -H "Authorization: Bearer $TOKEN" https://api.example.com/v1/items',
    "git clone https://github.com/example/repository-with-a-long-name-2024.git",
    "vault kv get -field=password secret/data/app2/database",
    "aws secretsmanager get-secret-value --secret-id prod/db/password-2",
    "psql postgres://localhost:5432/app",
    'psql "postgres://$USER:$PASSWORD@localhost/app"',
    "DATABASE_URL=postgres://USER:PASSWORD@HOST/NAME",
    'url = f"postgres://{user}:{password}@{host}/{name}"',
    "url = 'https://%s:%s@%s' % (user, password, host)",
    "for key, value in tokens.items(): counts[key] += 1",
    "key = f'{prefix}:{user_id}:session2'",
    "PRIMARY KEY (id), FOREIGN KEY (customer_id) REFERENCES customers(id)",
    "cache_key = hashlib.sha256(data).hexdigest()[:16]",
    "public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExam ada@example.org",
    "hash = '$2b$12$' + 'a' * 53",
    "assert is_token('a.b.c') is False",
    "regex = r'gh[pousr]_[A-Za-z0-9]{36}'",
    "pattern = re.compile(r'AKIA[0-9A-Z]{16}')",
    "SELECT count(*) FROM tokens WHERE expires_at < now() - interval '1 day'",
    "tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased', token=None)",
    "hf_hub_download(repo_id='a/b', filename='config.json')",
    "os.environ['HF_HUB_ENABLE_HF_TRANSFER'] = '1'",
    "npm_config_registry=https://registry.npmjs.org/ npm_package_version=1.2.3 npm run build",
    "type PasswordPolicy = { minLength: 12; requireDigits: true }",
]
_LINKS = [
    "https://example.com/sk-learn-ensemble-methods",
    "https://example.com/articles/sk-proj-management-guide-for-beginners",
    "https://sk-telecom.example.com/products/sk-ant-colony-optimization",
    "https://shop.example.sk/risk-free-trial?campaign=task-force-2026&ref=desk-mats",
    "https://example.com/skins/dusk-til-dawn-sk-edition-12345",
    "https://cdn.example.com/assets/sk-circle-fade-3f2a9c.css",
    "https://user@example.com/path:with:colons@and-at",
    "ssh://git@github.com:22/example/repo.git",
    "git@github.com:example/repo.git",
    "https://example.com:8443/api/v1/tokens?page=2&next_page_token=CAIQAA",
    "https://medium.com/@ada:lovelace/notes-on-keys",
    "http://localhost:8000/oauth/token?grant_type=authorization_code",
    "https://docs.example.com/reference/api-key-authentication#creating-a-key",
    "https://github.com/example/repo/commit/0f0c092fe433aa51b6dbb7f8b7c9d2bb0d6f1a1e",
    "https://example.com/files/2026/03/01/report-final-v2-really-final.pdf",
    "mailto:ada@example.org?subject=password%20reset",
    "s3://example-bucket/backups/2026-03-01/memory.tar.zst",
    "file:///home/ada/project/ContextMemory/memories/semantic/2026-03/use-postgresql-7h2k9q.yaml",
    "https://example.com/?utm_source=newsletter&utm_campaign=spring-sale-2026&id=48151623",
    "https://www.npmjs.com/package/sk-cli-tools-for-kubernetes-operators",
    "wss://stream.example.com:443/socket?session=abc",
    "https://pypi.org/project/pypi-AgentTools/",
    "https://arxiv.org/abs/2601.05504v2",
    "https://example.com/eyJ-is-how-json-begins",
    "jdbc:postgresql://localhost:5432/app?ssl=true",
]
_NAMES = [
    f"{before}sk-{after}"
    for before in ("ta", "ri", "de", "di", "ma", "bri", "")
    for after in ("based-approach-to-planning", "learn-0.24.2", "spinner-double-bounce2", "2024-summary", "proj-plan")
]
_STAND_INS = [
    "OPENAI_API_KEY=sk-...",
    "ANTHROPIC_API_KEY=sk-ant-...",
    "ANTHROPIC_API_KEY=<your key>",
    "api_key: your-api-key-goes-here-1",
    "GITHUB_TOKEN=ghp_xxxxxxxx",
    "token: xxxxxxxxxxxxxxxxxxxx",
    "password: ********",
    "password: changeme123",
    "password: <redacted>",
    "secret: [REDACTED]",
    "sk-ant-api03-your-key",
    "export TOKEN=$(cat ~/.config/token2)",
    "client_secret: vault:secret/data/app2#client_secret",
    "password: op://staging/database2/password",
    "aws_secret_access_key = %(AWS_SECRET)s",
    "postgres://user:****@db.example.com/app",
    "postgres://user:<password>@db.example.com/app",
    "AKIAXXXX",
    "xoxb-your-token",
    "Bearer <token>",
]
