-- For the accept scripts, in place: the session waits, or is at work. Reads ws, ses, and stands, its place among the workspace's.
-- (Acceptance never lowers a locked session's score: that is its lock's deadline.)
if (not stands or stands == 'inf' or tonumber(stands) > now) and call('EXISTS', key('outboxlock', ws, ses)) == 0 then
  -- include: core
  rearm(ws, ses)
end
