-- A paused endpoint gets no new challenges, but payments for earlier challenges are still redeemed. Null means that the
-- endpoint sells.
alter table seller_endpoints add column paused_at timestamptz(3);
