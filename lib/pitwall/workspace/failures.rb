# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  class Workspace
    # A side that can't be built: a bundle that doesn't install, an extension that doesn't compile, a patch that doesn't apply.
    # One line: which side, which step, the last line of the log, where the log is.
    class BuildFailed < CannotMeasure; end
  end
end
