Feature: Five types, review and budget
  Seed 003: what is worth keeping is stored with a score and reasons, what is trivial is not, and what comes back is relevant
  and within a budget.

  Background:
    Given a memory coordinator

  Scenario: A decision is stored by consensus
    When I store "Decided to use PostgreSQL for transactions" as "episodic"
    Then it is stored with a consensus of at least 6.0
    And each of the three reviewers gave a score and a reason

  Scenario Outline: Trivial texts are not stored
    When I store "<content>" as "working"
    Then it is not stored, because it is trivial

    Examples:
      | content   |
      | Hi there  |
      | ok thanks |
      | ...       |

  Scenario: What was stored is retrieved with all its fields
    When I store "Implemented JWT authentication with RS256" as "procedural"
    Then retrieving "JWT authentication" gives "Implemented JWT authentication with RS256" first
    And it has an id, a type, a time, a token count, metadata, a context and a relevance score

  Scenario: The same thing is not stored twice
    Given "Decided to use PostgreSQL for transactions" is stored as "episodic"
    When I store "decided to use  PostgreSQL for transactions." as "episodic"
    Then it is reported as merged into the first
    And there is 1 memory

  Scenario: A contradiction is linked and told
    Given "The orders table is partitioned by month" is stored as "semantic"
    When I store "The orders table is not partitioned by month" as "semantic"
    Then it is reported as contradicting the first

  Scenario: Types and time restrict what is retrieved
    Given "Decided to use PostgreSQL for transactions" is stored as "episodic"
    And "PostgreSQL backups are restored with pgbackrest restore" is stored as "procedural"
    Then retrieving "PostgreSQL" of the type "procedural" gives only "PostgreSQL backups are restored with pgbackrest restore"
    And retrieving "PostgreSQL" since tomorrow gives nothing

  Scenario: An empty question lists the newest first
    Given "Remember to rotate the signing keys before March" is stored as "prospective"
    And "Plan to upgrade the message broker after the release" is stored as "prospective"
    Then retrieving nothing in particular of the type "prospective" gives these, the newest first

  Scenario: The answer stays within the token budget
    Given 6 long procedures about deployment are stored
    Then retrieving "deployment" within 120 tokens gives some of them, of at most so many

  Scenario: Near repetitions are left out where that is asked for
    Given two nearly equal memories about the release
    Then retrieving "release" without repetitions gives one memory
    And retrieving "release" gives two memories

  Scenario: Several questions are answered at once
    Given "Decided to use PostgreSQL for transactions" is stored as "episodic"
    And "Implemented JWT authentication with RS256" is stored as "procedural"
    Then asking "PostgreSQL" and "JWT" together gives each its own answer

  Scenario: Counts, deletion and the end of a session
    Given "Decided to use PostgreSQL for transactions" is stored as "episodic"
    And "Comparing retry policies for the payment client now" is stored as working memory of the session "s1"
    And "Reading the broker documentation about dead letters" is stored as working memory of the session "s2"
    When the working memory of the session "s1" is cleared
    Then 1 memory was cleared
    And the counts are "episodic" 1, "working" 1
    And deleting the first memory says yes, and deleting it again says no
