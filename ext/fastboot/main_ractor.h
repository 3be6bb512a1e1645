#ifndef FASTBOOT_MAIN_RACTOR_H
#define FASTBOOT_MAIN_RACTOR_H

/* Other Ractors load and warn as without the accelerator. fb_note_main_ractor is called once, by the main one. */
void fb_note_main_ractor(void);
int fb_in_main_ractor(void);

#endif
