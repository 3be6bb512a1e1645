# frozen_string_literal: true

# Kills this process, with all of its group, while it writes to the accelerator's pack: KILL_AT=1234 after 1,234 bytes,
# in the middle of a write. A rename counts as 500 bytes before and 500 after. KILL_AT=never: it writes until a limit of
# file sizes kills it, or fails.
module FastbootKilling
  FOLDER = ENV.fetch("PITWALL_BOOT_CACHE")
  @left = ENV["KILL_AT"] == "never" ? Float::INFINITY : Integer(ENV.fetch("KILL_AT"))

  module_function

  # @return [Integer, nil] how many of these bytes may be written before the end
  def spend(bytes)
    left = @left
    @left -= bytes
    left if @left.negative?
  end

  def kill = Process.kill(:KILL, 0) && sleep

  # For File.
  module Writing
    def write(*texts)
      return super unless path.start_with?(FOLDER)

      text = texts.map(&:b).join
      allowed = FastbootKilling.spend(text.bytesize) or return super
      flush
      syswrite(text.byteslice(0, allowed)) if allowed.positive?
      FastbootKilling.kill
    end
  end

  # For File's class.
  module Renaming
    def rename(...)
      FastbootKilling.kill if FastbootKilling.spend(500)
      super.tap { FastbootKilling.kill if FastbootKilling.spend(500) }
    end
  end

  # For Folder, which would write nothing because of the limit of file sizes.
  module Unchecked
    def check_room(_bytes) = nil
  end

  Pitwall::Fastboot::Folder.singleton_class.prepend(Unchecked)
  File.prepend(Writing)
  File.singleton_class.prepend(Renaming)
end
