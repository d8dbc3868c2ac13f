"""The table of what a secret looks like.

Owns one row for each sort of key, password or token: its stable name, what it is called in an error, words one of which
must occur before the row is looked at, and its pattern. A row with a group names the part that must look random
(``accept``). Each pattern is linear: bounded, or anchored so that two tries never walk the same characters. TOKENS are
unbroken runs of characters that begin with one of their words, so they are looked for in long words only; so are those
of INSIDE, with the word anywhere in them. CONTEXTS need what stands around the value; each begins with one of its
words, and is tried only where that stands. Must not know files, items or what is done with a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from memfs.files.secrets_values import (
    is_assigned_secret,
    is_basic_credentials,
    is_bearer,
    is_digits_and_letters,
    is_option_value,
    is_password_in_url,
    is_random,
    may_be_secret,
)

Accept = Callable[["re.Match[str]"], bool]


class Rule(NamedTuple):
    """One row: see the module. ``words`` are lower case."""

    id: str
    what: str
    words: tuple[str, ...]
    pattern: str
    accept: Accept | None = None


def _tail(judge: Callable[[str], bool]) -> Accept:
    """Judge the group of the match."""
    return lambda match: judge(match[1])


_RANDOM = _tail(is_random)
_NOT_IN_WORD = r"(?<![A-Za-z0-9])"
_ENDS = r"(?![A-Za-z0-9])"
_ALONE = r"(?<![A-Za-z0-9+/=_-])"
_ALONE_ENDS = r"(?![A-Za-z0-9+/=_-])"
_NAMES = "(pass(?:word|wd|phrase|code)|pwd|secret|key|token|credentials?)"
_KEY_OF = re.compile(
    r"(?:api|access|auth|account|encryption|signing|private|master|service|secret)[ _-]?\Z", re.IGNORECASE | re.ASCII
)
_BEFORE = 20

LONG_WORD = r"[A-Za-z0-9_+/=.~%:@-]{16,}"
"""Every character that a token of the table can hold, and the shortest of them."""


def _assigned(match: re.Match[str]) -> bool:
    if not may_be_secret(match[5], quoted=bool(match[4])):
        return False
    text, start = match.string, match.start()
    if text[match.end() : match.end() + 1] in ("(", "[") and not match[4]:
        return False
    before = text[max(0, start - _BEFORE) : start]
    if match[1].lower() == "key" and not _KEY_OF.search(before):
        return False
    told = match[3].strip().lower() == "is"
    return is_assigned_secret(match[1], before, match[2], match[5], quoted=bool(match[4]), told=told)


def _token(name: str, what: str, prefix: str, tail: str, *words: str) -> Rule:
    """A row for a token that begins with a prefix nothing else has."""
    return Rule(name, what, words, f"{_NOT_IN_WORD}{prefix}({tail})", _RANDOM)


_ANY = r"[A-Za-z0-9_-]"
_ALNUM = "[A-Za-z0-9]"
_HEX = "[0-9a-fA-F]"

TOKENS: tuple[Rule, ...] = (
    # clouds
    Rule("aws-access-key", "an AWS access key", ("akia", "asia", "abia", "acca"),
         rf"{_NOT_IN_WORD}A(?:KI|SI|BI|CC)A[A-Z0-9]{{16}}{_ENDS}"),
    _token("aws-bedrock-key", "an AWS Bedrock key", "ABSK", r"[A-Za-z0-9+/]{60,300}", "absk"),
    _token("google-api-key", "a Google API key", "AIza", f"{_ANY}{{30,60}}", "aiza"),
    _token("google-oauth-secret", "a Google OAuth client secret", "GOCSPX-", f"{_ANY}{{20,60}}", "gocspx-"),
    _token("google-oauth-token", "a Google OAuth token", r"ya29\.", r"[A-Za-z0-9._-]{20,2048}", "ya29."),
    _token("google-refresh-token", "a Google refresh token", "1//0", f"{_ANY}{{30,200}}", "1//0"),
    Rule("azure-sas", "an Azure shared access signature", ("sig=",),
         rf"{_NOT_IN_WORD}sig=[A-Za-z0-9%+/]{{30,200}}={{0,2}}"),
    Rule("alibaba-access-key", "an Alibaba access key", ("ltai",), rf"{_ALONE}LTAI({_ALNUM}{{16,24}}){_ALONE_ENDS}",
         _RANDOM),
    Rule("digitalocean-token", "a DigitalOcean token", ("doo_", "dop_", "dor_"),
         rf"{_NOT_IN_WORD}do[opr]_v1_{_HEX}{{40,80}}"),
    Rule("databricks-token", "a Databricks token", ("dapi",), rf"{_NOT_IN_WORD}dapi{_HEX}{{32}}"),
    _token("cloudflare-key", "a Cloudflare origin key", r"v1\.0-", f"{_HEX}{{24}}-{_HEX}{{100,160}}", "v1.0-"),
    _token("fly-token", "a Fly.io token", "f[om][12]_", r"[A-Za-z0-9_+/=-]{40,2000}", "fo1_", "fm1_", "fm2_"),
    _token("netlify-token", "a Netlify token", "nfp_", f"{_ALNUM}{{30,60}}", "nfp_"),
    _token("heroku-key", "a Heroku key", "HRKU-", f"{_ANY}{{30,100}}", "hrku-"),
    _token("supabase-key", "a Supabase key", "sb(?:p|_secret)_", f"{_ANY}{{20,80}}", "sbp_", "sb_secret_"),
    _token("planetscale-key", "a PlanetScale key", "pscale_(?:tkn|pw|oauth)_", r"[A-Za-z0-9_.=-]{20,100}", "pscale_"),
    # forges, registries, build services
    _token("github-token", "a GitHub token", "gh[pousr]_", f"{_ALNUM}{{20,300}}", "ghp_", "gho_", "ghu_", "ghs_",
           "ghr_"),
    _token("github-token", "a GitHub token", "github_pat_", "[A-Za-z0-9_]{20,255}", "github_pat_"),
    _token("gitlab-token", "a GitLab token", "gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct|wt)-",
           r"[A-Za-z0-9_.=-]{20,300}", "glpat-", "gloas-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-",
           "glimt-", "glagent-", "glsoat-", "glffct-", "glwt-"),
    _token("gitlab-token", "a GitLab runner token", "GR1348941", f"{_ANY}{{20}}", "gr1348941"),
    _token("bitbucket-token", "a Bitbucket token", "ATBB", f"{_ALNUM}{{28,40}}", "atbb"),
    _token("atlassian-token", "an Atlassian token", "AT(?:ATT|CTT)3", r"[A-Za-z0-9_=-]{30,300}", "atatt3", "atctt3"),
    _token("npm-token", "an npm token", "npm_", f"{_ALNUM}{{30,40}}", "npm_"),
    _token("pypi-token", "a PyPI token", "pypi-AgE", f"{_ANY}{{16,400}}", "pypi-age"),
    Rule("rubygems-key", "a RubyGems key", ("rubygems_",), rf"{_NOT_IN_WORD}rubygems_{_HEX}{{40,64}}"),
    Rule("crates-token", "a crates.io token", ("cio",), rf"{_ALONE}cio({_ALNUM}{{32}}){_ALONE_ENDS}", _RANDOM),
    Rule("nuget-key", "a NuGet key", ("oy2",), rf"{_ALONE}oy2([a-z0-9]{{43}}){_ALONE_ENDS}", _RANDOM),
    _token("docker-token", "a Docker token", "dckr_(?:pat|oat)_", f"{_ANY}{{20,60}}", "dckr_"),
    _token("circleci-token", "a CircleCI token", "CCI(?:PAT|PRJ)_", r"[A-Za-z0-9_]{30,100}", "ccipat_", "cciprj_"),
    _token("buildkite-token", "a Buildkite token", "bk(?:ua|aj|ct)_", f"{_ALNUM}{{30,60}}", "bkua_", "bkaj_", "bkct_"),
    Rule("sonar-token", "a SonarQube token", ("sqp_", "squ_", "sqa_"), rf"{_NOT_IN_WORD}sq[pua]_{_HEX}{{40}}"),
    _token("artifactory-key", "an Artifactory key", "AKCp", f"{_ALNUM}{{60,80}}", "akcp"),
    # model vendors and their tools
    _token("anthropic-key", "an Anthropic key", "sk-ant-", f"{_ANY}{{12,300}}", "sk-ant-"),
    _token("openai-key", "an OpenAI key", "sk-(?:proj|svcacct|admin|service|None)-", f"{_ANY}{{16,300}}", "sk-proj-",
           "sk-svcacct-", "sk-admin-", "sk-service-", "sk-none-"),
    _token("openrouter-key", "an OpenRouter key", "sk-or-", f"{_ANY}{{16,200}}", "sk-or-"),
    _token("langfuse-key", "a Langfuse key", "sk-lf-", "[0-9a-f-]{32,40}", "sk-lf-"),
    Rule("openai-key", "an OpenAI key", ("sk-",), rf"(?<![A-Za-z0-9_-])sk-({_ALNUM}{{20,200}})(?![A-Za-z0-9-])",
         _tail(is_digits_and_letters)),
    _token("huggingface-token", "a Hugging Face token", "(?:hf|api_org)_", f"{_ALNUM}{{30,50}}", "hf_", "api_org_"),
    _token("groq-key", "a Groq key", "gsk_", f"{_ALNUM}{{30,80}}", "gsk_"),
    _token("xai-key", "an xAI key", "xai-", f"{_ALNUM}{{30,120}}", "xai-"),
    _token("perplexity-key", "a Perplexity key", "pplx-", f"{_ALNUM}{{30,80}}", "pplx-"),
    _token("replicate-token", "a Replicate token", "r8_", f"{_ALNUM}{{30,50}}", "r8_"),
    _token("fireworks-key", "a Fireworks key", "fw_", f"{_ALNUM}{{22,40}}", "fw_"),
    _token("together-key", "a Together key", "tgp_v1_", f"{_ANY}{{30,60}}", "tgp_v1_"),
    _token("cerebras-key", "a Cerebras key", "csk-", "[a-z0-9]{40,60}", "csk-"),
    _token("nvidia-key", "an NVIDIA key", "nvapi-", f"{_ANY}{{40,90}}", "nvapi-"),
    _token("pinecone-key", "a Pinecone key", "pcsk_", "[A-Za-z0-9_]{30,100}", "pcsk_"),
    _token("tavily-key", "a Tavily key", "tvly-(?:dev-|prod-)?", f"{_ALNUM}{{20,60}}", "tvly-"),
    _token("langsmith-key", "a LangSmith key", "lsv2_(?:pt|sk)_", "[0-9a-f]{32}_[0-9a-f]{10}", "lsv2_"),
    _token("jina-key", "a Jina key", "jina_", f"{_ANY}{{40,80}}", "jina_"),
    _token("voyage-key", "a Voyage key", "pa-", f"{_ANY}{{43}}(?!{_ANY})", "pa-"),
    Rule("elevenlabs-key", "an ElevenLabs key", ("sk_",), rf"{_NOT_IN_WORD}sk_[0-9a-f]{{48}}{_ENDS}"),
    Rule("e2b-key", "an E2B key", ("e2b_",), rf"{_NOT_IN_WORD}e2b_[0-9a-f]{{40}}{_ENDS}"),
    Rule("firecrawl-key", "a Firecrawl key", ("fc-",), rf"{_NOT_IN_WORD}fc-[0-9a-f]{{32}}{_ENDS}"),
    # talking and mailing
    _token("slack-token", "a Slack token", "xox[abeoprs](?:\\.xox[bp])?-", "[A-Za-z0-9-]{10,300}", "xox"),
    _token("slack-token", "a Slack app token", "xapp-", "[0-9]-[A-Za-z0-9-]{10,300}", "xapp-"),
    Rule("slack-webhook", "a Slack webhook", ("hooks.slack.com",),
         r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,200}"),
    Rule("discord-webhook", "a Discord webhook", ("discord.com", "discordapp.com"),
         r"discord(?:app)?\.com/api/webhooks/[0-9]{10,25}/[A-Za-z0-9_-]{40,100}"),
    Rule("teams-webhook", "a Teams webhook", ("webhook.office.com",),
         r"webhook\.office\.com/webhookb2/[A-Za-z0-9@-]{60,100}/IncomingWebhook/[A-Za-z0-9]{20,40}"),
    Rule("sendgrid-key", "a SendGrid key", ("sg.",), rf"{_NOT_IN_WORD}SG\.{_ANY}{{16,32}}\.{_ANY}{{16,64}}"),
    Rule("mailgun-key", "a Mailgun key", ("key-",), rf"{_NOT_IN_WORD}key-[0-9a-f]{{32}}{_ENDS}"),
    # money, shops, work
    _token("stripe-key", "a Stripe key", "[sr]k_(?:live|test|prod)_", f"{_ALNUM}{{10,250}}", "sk_", "rk_"),
    _token("stripe-webhook-secret", "a Stripe webhook secret", "whsec_", "[A-Za-z0-9+/]{20,100}", "whsec_"),
    Rule("shopify-token", "a Shopify token", ("shp",), rf"{_NOT_IN_WORD}shp(?:at|ca|pa|ss|tka)_{_HEX}{{32}}"),
    _token("square-secret", "a Square secret", "sq0(?:csp|atp)-", f"{_ANY}{{20,60}}", "sq0csp-", "sq0atp-"),
    _token("linear-key", "a Linear key", "lin_(?:api|oauth)_", f"{_ALNUM}{{30,80}}", "lin_"),
    _token("notion-token", "a Notion token", "(?:ntn|secret)_", f"{_ALNUM}{{40,60}}", "ntn_", "secret_"),
    _token("airtable-token", "an Airtable token", "pat", rf"{_ALNUM}{{14}}\.[0-9a-f]{{64}}", "pat"),
    _token("figma-token", "a Figma token", "fig[dur]_", f"{_ANY}{{30,60}}", "figd_", "figu_", "figr_"),
    Rule("postman-key", "a Postman key", ("pmak-",), rf"{_NOT_IN_WORD}PMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    _token("sentry-token", "a Sentry token", "sntry[su]_", r"[A-Za-z0-9_+/=.-]{30,400}", "sntrys_", "sntryu_"),
    _token("grafana-token", "a Grafana token", "gl(?:sa|c)_", r"[A-Za-z0-9_+/=]{30,400}", "glsa_", "glc_"),
    Rule("newrelic-key", "a New Relic key", ("nrak-",), rf"{_NOT_IN_WORD}NRAK-[A-Z0-9]{{27}}"),
    _token("doppler-token", "a Doppler token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.", r"[A-Za-z0-9._-]{30,80}", "dp."),
    _token("dropbox-token", "a Dropbox token", r"sl\.(?:u\.)?", f"{_ANY}{{100,2000}}", "sl."),
    Rule("facebook-token", "a Facebook token", ("eaa",), rf"{_ALONE}EAA[A-Z]{_ALNUM}{{60,400}}{_ALONE_ENDS}"),
    # secret keepers and networks
    _token("vault-token", "a Vault token", r"hv[sbr]\.", f"{_ANY}{{20,300}}", "hvs.", "hvb.", "hvr."),
    Rule("pulumi-token", "a Pulumi token", ("pul-",), rf"{_NOT_IN_WORD}pul-[0-9a-f]{{40}}"),
    _token("tailscale-key", "a Tailscale key", "tskey-(?:auth-|api-|client-|scim-|webhook-)?", f"{_ANY}{{16,80}}",
           "tskey-"),
    _token("onepassword-token", "a 1Password token", "ops_eyJ", r"[A-Za-z0-9+/=_-]{40,2000}", "ops_eyj"),
    Rule("age-key", "an age secret key", ("age-secret-key-",), r"(?i)AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{30,80}"),
    Rule("jwt", "a JSON web token", ("eyj",),
         r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,4096}={0,2}\.eyJ[A-Za-z0-9_-]{2,8192}={0,2}\.[A-Za-z0-9_-]{3,2048}"),
)  # fmt: skip
INSIDE: tuple[Rule, ...] = (
    Rule("azure-client-secret", "an Azure client secret", ("q~",),
         r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,40}"),
    Rule("discord-token", "a Discord bot token", (".",),
         r"(?<![A-Za-z0-9_.-])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_.-])"),
    Rule("telegram-token", "a Telegram bot token", (":a",),
         rf"{_NOT_IN_WORD}[0-9]{{7,11}}:AA{_ANY}{{30,40}}(?!{_ANY})"),
    Rule("twilio-key", "a Twilio key", ("sk",), rf"{_NOT_IN_WORD}SK[0-9a-f]{{32}}{_ENDS}"),
    Rule("mailchimp-key", "a Mailchimp key", ("-us",), rf"{_NOT_IN_WORD}[0-9a-f]{{32}}-us[0-9]{{1,2}}{_ENDS}"),
    Rule("terraform-token", "a Terraform token", (".atlasv1.",), r"\.atlasv1\.[A-Za-z0-9_=-]{40,100}"),
)  # fmt: skip
CONTEXTS: tuple[Rule, ...] = (
    Rule("private-key", "a private key", ("-----begin", "---- begin"),
         r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
         r"(?:(?:\\{1,4}[rn]|[\s\"',+>|]){0,200}(?:[A-Za-z0-9+/=]{16}|Proc-Type|DEK-Info|Version:|Comment:)|\s*(?:\n|\Z))"),
    Rule("private-key", "a PuTTY private key", ("putty-user-key-file-",), r"PuTTY-User-Key-File-[0-9]:"),
    Rule("azure-storage-key", "an Azure storage or service bus key", ("accountkey", "sharedaccesskey"),
         r"(?:Account|SharedAccess)Key\s{0,3}=\s{0,3}[A-Za-z0-9+/]{40,100}={0,2}"),
    Rule("npm-token", "an npm token", ("_authtoken",),
         r"_authToken\s{0,3}=\s{0,3}[\"']?([^\s\"'$<{]{10,200})", _RANDOM),
    Rule("docker-auth", "a Docker login", ('"auth"',), r'"auth"\s{0,3}:\s{0,3}"([A-Za-z0-9+/]{12,400}={0,2})"',
         _tail(is_basic_credentials)),
    Rule("password-in-url", "a URL with a password", ("://",),
         r"://[^\s/:@\"'<>`]{0,128}:([^\s/@\"'`]{1,256})@[A-Za-z0-9\[$<{_.-]", _tail(is_password_in_url)),
    Rule("bearer-token", "a bearer token", ("bearer",), r"bearer[ \t]{1,4}([A-Za-z0-9_.=+/~-]{20,2048})",
         _tail(is_bearer)),
    Rule("basic-credentials", "a user name with a password", ("authorization",),
         r"authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?basic[ \t]{1,4}([A-Za-z0-9+/]{8,400}={0,2})",
         _tail(is_basic_credentials)),
    Rule("password-option", "a password given as an option", ("curl", "wget"),
         r"(?:curl|wget)[ \t][^\n]{0,120}?[ \t](?:-u|--user)[ =][\"']?[^\s:\"']{1,100}:([^\s\"'|;&]{6,200})",
         _tail(is_option_value)),
    Rule("password-option", "a password given as an option", ("--",),
         r"--(?:password|passwd|token|api-?key|secret|secret-key|client-secret|auth-token)[ =]"
         r"[\"']?([^\s\"'|;&]{6,200})",
         _tail(is_option_value)),
    Rule("netrc-password", "a password of a .netrc", ("machine",),
         r"machine[ \t\n]{1,4}\S{1,200}[ \t\n]{1,8}login[ \t\n]{1,4}\S{1,200}[ \t\n]{1,8}"
         r"password[ \t\n]{1,4}([^\s<$\"{]{4,200})"),
    Rule("assigned-secret", "a password or key written out", ("password", "passwd", "passphrase", "passcode", "pwd",
         "secret", "key", "token", "credential"),
         rf"{_NAMES}([A-Za-z0-9_-]{{0,24}}+)[\"'`*]{{0,3}}+"
         r"(\s{0,4}(?::=|=>|==?|:)\s{0,4}|[ \t]{1,4}is[ \t]{1,4})\\?"
         r"([\"'`]?)([^\s\"'`,;<>(){}\[\]|\\]{6,200})", _assigned),
)  # fmt: skip


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, compiled when a text first asks for it: most rows never are."""
    return re.compile(pattern, re.ASCII)


@cache
def compiled_anyhow(pattern: str) -> re.Pattern[str]:
    """As ``compiled``, whatever the case: the words of CONTEXTS are written in any."""
    return re.compile(pattern, re.ASCII | re.IGNORECASE)
