-- A paused endpoint gets no new challenges; what was challenged before is redeemed. Null: it sells.
alter table seller_endpoints add column paused_at timestamptz(3);
