# frozen_string_literal: true

require "pitwall/errors"

module Pitwall
  class Workspace
    # A side can't be built: e.g. a bundle doesn't install, an extension doesn't compile, or a patch doesn't apply.
    # The message is one line: the side, the step, the log's last line, and the log's path.
    class BuildFailed < CannotMeasure; end
  end
end
