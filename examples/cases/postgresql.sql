-- A resource in PostgreSQL that refuses a holder that has lost its lock and does not know it: each
-- row keeps the largest fence that it has seen, and no smaller one passes. For an application that
-- prepares statements; in psql:
--
--     EXECUTE read_balance('alice', 1763722113000000);       -- the fence: of redlock_fence(lock)
--     EXECUTE write_balance('alice', 1763722113000000, 50);
--
-- A statement that returns no row is a refusal: the holder stops. One is a transaction of its own,
-- or part of a longer one: a statement that meets an uncommitted one of a later holder waits for it,
-- and then looks at the fence again (READ COMMITTED), or fails (REPEATABLE READ, SERIALIZABLE).

CREATE TABLE IF NOT EXISTS accounts (
    name text PRIMARY KEY,
    balance bigint NOT NULL DEFAULT 0,
    fence bigint NOT NULL DEFAULT 0 -- a fence is below 2^53
);

-- Reading leaves the fence too: otherwise an earlier holder could still write behind the reading, and
-- this one would overwrite a balance that it has not seen.
PREPARE read_balance (text, bigint) AS
INSERT INTO accounts (name, fence) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET fence = $2 WHERE accounts.fence <= $2
RETURNING balance;

PREPARE write_balance (text, bigint, bigint) AS
UPDATE accounts SET balance = $3, fence = $2 WHERE name = $1 AND fence <= $2
RETURNING balance;
